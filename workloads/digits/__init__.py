"""The digits workload: recognizes handwritten digits."""
