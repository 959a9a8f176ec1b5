"""The groups of settings in a training job, each a frozen dataclass that checks itself."""
