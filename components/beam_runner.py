"""Beam's runner inside a node's own process, for which our executors have something quicker."""

IN_PROCESS = "FnApiRunner"
"""Beam's name of it. It opens no port."""
