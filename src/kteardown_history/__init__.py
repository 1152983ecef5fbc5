"""The history: one metric over the kernels and dates of many runs."""

TITLE = "Many runs"
VERBS = {
    "history": "kteardown_history.verb:history",
    "site": "kteardown_history.site.verb:site",
    "query": "kteardown_history.query:query",
    "export": "kteardown_history.query:export",
}
HOOKS = {"drifts": "kteardown_history.drift:drifts"}
