"""A server of the Model Context Protocol: programs measure with kteardown and read what it says."""

TITLE = "For programs"
VERBS = {"mcp": "kteardown_mcp.verb:mcp"}
