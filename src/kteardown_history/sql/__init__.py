"""The records of many runs as SQL tables (DuckDB)."""
