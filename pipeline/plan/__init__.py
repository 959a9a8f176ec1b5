"""The request of a run, and which nodes have to run for it."""
