"""Profiles: sampled stacks summarized by function."""
