"""Which of the problems that kteardown measures does a live machine have, and what do they cost."""

TITLE = "Live machines"
