"""Training on machines other than the pipeline's: requesting them, and the process they run."""
