"""What users own: one package per workload, reached by dotted path only."""
