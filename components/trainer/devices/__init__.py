"""Devices: what there is to train on, how it is opened, and the scope that the model is built in."""
