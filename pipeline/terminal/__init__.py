"""Terminal input and output of commands: printable text, questions, streams, progress lines."""
