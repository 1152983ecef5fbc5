"""What runs the boots of a plan on other machines: the scheduler of a cluster."""
