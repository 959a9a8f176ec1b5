"""SavedModels as a caller sees them: what goes in and what comes out."""
