"""Names Beam's in-process runner, in whose place our executors use a faster implementation."""

IN_PROCESS = "FnApiRunner"
"""Beam's name for the runner inside a node's own process. It opens no port."""
