"""The training loop: fits the model step by step, with callbacks that record, save and resume it."""
