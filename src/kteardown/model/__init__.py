"""What the data of kteardown is: experiments, workloads, plans, records, results. No input or output."""
