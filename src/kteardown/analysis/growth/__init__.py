"""How a metric grows with a parameter."""
