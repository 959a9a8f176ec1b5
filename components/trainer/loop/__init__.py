"""The loop: fitting the model step by step, with what watches it, keeps it and goes on with it."""
