"""Predicts a training on a TPU without a TPU: whether it compiles and fits, its speed and its cost."""
