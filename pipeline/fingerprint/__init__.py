"""What the result of a node depends on, and what changed since an earlier run."""
