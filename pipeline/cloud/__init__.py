"""Runs of the pipeline elsewhere: compiled for Vertex AI Pipelines and Kubeflow, and rehearsed here first."""
