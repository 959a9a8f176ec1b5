"""Training: a job in a file, a process that carries it out, and the SavedModel made of its weights."""
