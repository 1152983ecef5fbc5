"""Statistics on arrays: intervals, tests, verdicts."""
