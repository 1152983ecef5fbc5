"""A script, C file or command of the user's own as a workload: its files in the guest, and its
metrics."""
