"""Which kinds of kernel objects cost more for each object, the more of them there are."""

TITLE = "More"
VERBS = {"hunt": "kteardown_hunt.verb:hunt"}
LISTS = {"kinds": "kteardown_hunt.verb:list_kinds"}

RULES = 2
"""The number of the rules by which a hunt measures kinds and decides what is a find.

Increase it with every change of this package after which the same kernel gives other verdicts:
other sizes or seeds, other costs from the same records, another rule for what is confirmed or
superlinear. What is published in ``results/`` is then older than what it depends on. 2: every
deferred cost is confirmed.
"""
