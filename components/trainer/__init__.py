"""Training: a job in a file, a process that runs it, and the SavedModel built from the trained weights."""
