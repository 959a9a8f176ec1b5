"""Runs a compiled job on this machine, task by task, and compares it with the local run."""
