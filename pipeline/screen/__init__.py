"""The screen output of a run: live progress, tables and texts."""
