"""Reports from results, in every format."""
