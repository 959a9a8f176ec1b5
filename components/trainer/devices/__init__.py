"""Devices: the evidence for them, how they are opened, and the scope that the model is built in."""
