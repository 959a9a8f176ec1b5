"""A log of a model's requests and answers: JSON Lines in files that rotate."""
