"""SavedModels from a caller's view: their inputs and outputs."""
