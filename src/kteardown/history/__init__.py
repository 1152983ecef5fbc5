"""One metric over the kernels and the time of many runs."""
