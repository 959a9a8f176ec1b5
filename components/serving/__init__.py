"""A small HTTP server with TF Serving's REST paths, for trying a model out. Not for production."""
