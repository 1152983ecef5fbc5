"""The history: one metric over the kernels and dates of many runs."""
