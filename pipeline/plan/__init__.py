"""The request of a run, and the decision which nodes have to run for it."""
