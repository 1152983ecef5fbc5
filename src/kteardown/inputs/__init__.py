"""Reading experiments, workloads and published figures, and applying command-line options to
them."""
