"""Workloads that are scripts, C files or commands of the user's own."""
