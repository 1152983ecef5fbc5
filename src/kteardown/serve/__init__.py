"""Local web pages: list the runs, compare two, show the history, follow a run while it is measured.

The server only reads, and listens only on the loopback interface.
"""
