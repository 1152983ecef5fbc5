"""From a mail to what the patch does: find base, choose the workloads, measure, and count."""
