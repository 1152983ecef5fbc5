"""Test what a public posting claims, with its own patch."""

TITLE = "Published claims"
VERBS = {"replicate": "kteardown_replicate.verb:replicate"}
