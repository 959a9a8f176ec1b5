"""Is the model in production still right? Its logged requests, held against the data of its training."""
