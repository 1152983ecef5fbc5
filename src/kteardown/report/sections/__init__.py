"""The tables of a report, one module for each kind."""
