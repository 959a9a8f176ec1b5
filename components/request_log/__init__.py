"""A log of what a model was asked and what it answered: JSON Lines in files that rotate."""
