"""Kernels from sources and patch series: fetched, configured, built, cached."""
