"""Boosted trees: fitted by scikit-learn, stored in arrays that a TensorFlow graph walks."""
