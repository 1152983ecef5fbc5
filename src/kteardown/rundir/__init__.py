"""The run directory: its files, the records that count, and its lock."""
