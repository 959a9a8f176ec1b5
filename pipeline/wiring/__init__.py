"""Turns the workload file into the settings of components and of Beam."""
