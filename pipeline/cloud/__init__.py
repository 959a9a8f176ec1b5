"""Pipeline runs in the cloud: compiled for Vertex AI Pipelines and Kubeflow, and rehearsed here first."""
