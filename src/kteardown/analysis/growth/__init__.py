"""Growth laws: how a metric grows with a parameter."""
