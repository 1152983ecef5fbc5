"""Find the commits that made a metric better or worse, or that broke the kernel."""
