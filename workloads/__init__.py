"""User code: one package per workload, imported by dotted path only."""
