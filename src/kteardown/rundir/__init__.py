"""The run directory: its files, which records count, and its lock."""
