"""Try what a mailing list has: its new series go into the queue."""

TITLE = "Mailing lists"
VERBS = {"watch": "kteardown_watch.verb:watch"}
