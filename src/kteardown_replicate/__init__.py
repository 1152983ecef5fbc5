"""Test what a public posting claims, with its own patch."""

TITLE = "More"
VERBS = {"replicate": "kteardown_replicate.verb:replicate"}
