"""Measures the exported model as a server would have it: in a process that has only TensorFlow."""
