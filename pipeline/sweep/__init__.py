"""Sweeps: many runs of one workload that differ in a few settings, and which of them was best."""
