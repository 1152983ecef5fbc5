"""Try what a mailing list has: its new series go into the queue."""

TITLE = "More"
VERBS = {"watch": "kteardown_watch.verb:watch"}
