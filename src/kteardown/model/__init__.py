"""The data of kteardown: experiments, workloads, plans, records, results. No input or output."""
