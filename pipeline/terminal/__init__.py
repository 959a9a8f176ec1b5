"""A command and the terminal it runs in: printable text, questions, streams, signs of life."""
