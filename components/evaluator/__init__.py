"""TFX's Evaluator with an executor of our own: whole batches of rows instead of one Python object a row."""
