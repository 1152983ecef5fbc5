"""Which of the problems that kteardown measures does a live machine have, and what do they cost."""

TITLE = "More"
VERBS = {"observe": "kteardown_observe.verb:observe"}
LISTS = {"problems": "kteardown_observe.verb:list_problems"}
