"""The inputs that a node's result depends on, and their changes since an earlier run."""
