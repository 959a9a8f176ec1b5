"""Models of scikit-learn on the same examples: whether the network earns its cost."""
