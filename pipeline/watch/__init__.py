"""Monitoring of a model in production: compares its logged requests with its training data."""
