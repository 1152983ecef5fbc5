"""Statistics: from records to a result."""

RULES = 3
"""The number of the rules by which records become figures and verdicts.

Increase it with every change after which the same records give another result: what is published in
``results/`` is then older than what it depends on, until it is analysed or measured again.
"""
