"""A small local page over the run directory: lists runs, compares two, follows one that is going on.

Read-only, on loopback, of reports alone.
"""
