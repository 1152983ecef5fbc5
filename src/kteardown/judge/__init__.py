"""What a result means: the only place that decides what is worse, what passes, and what is
unsure."""
