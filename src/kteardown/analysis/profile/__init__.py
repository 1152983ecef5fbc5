"""Where the time goes: sampled stacks summarised by function."""
