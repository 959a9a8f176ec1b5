"""A small HTTP server with TF Serving's REST paths, for trying out a model. Not for production."""
