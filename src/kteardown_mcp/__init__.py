"""A server of the Model Context Protocol: programs measure with kteardown and read what it says."""

TITLE = "More"
VERBS = {"mcp": "kteardown_mcp.verb:mcp"}
