"""The commands of local_runner.py."""
