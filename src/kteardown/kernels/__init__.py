"""Fetch, patch, configure, build and cache kernels."""
