"""Planning and executing the boots of a run."""
