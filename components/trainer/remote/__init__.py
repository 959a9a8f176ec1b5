"""Training on other machines than the pipeline's: what asks for them, and what runs there."""
