"""What runs the boots of a plan: this machine, or a cluster's scheduler. ``port`` is the interface."""
