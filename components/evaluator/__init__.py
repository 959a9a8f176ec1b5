"""TFX's Evaluator with our own executor: whole batches of rows instead of one Python object per row."""
