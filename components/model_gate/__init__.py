"""The gate before the Pusher: one blessing, with reasons in words, from the Evaluator's numbers."""
