"""Statistics: from records to a result."""
