"""What is asked for, and which nodes have to run for it."""
