"""The pipeline: its configuration, its wiring, and the ways to run it."""
