"""Sweeps: many runs of one workload with different settings, to find the best."""
