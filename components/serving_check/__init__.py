"""Measures the exported model as a server would load it: in a process that has only TensorFlow."""
