"""From records to a result: dataset, comparisons, growth laws, ablations."""
