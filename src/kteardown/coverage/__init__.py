"""Which kernel functions a workload executes, and which of them a patch changes."""
