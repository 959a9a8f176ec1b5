"""The users' own code: one package per workload, reached by dotted path only."""
