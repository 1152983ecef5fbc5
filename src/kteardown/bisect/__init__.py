"""Which commits made a difference: git bisect walks, and measurements judge."""
