"""The formats of a report, one module for each."""
