"""The screen output of a run."""
