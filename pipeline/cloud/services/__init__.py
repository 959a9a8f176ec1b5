"""The services that run a compiled job: Vertex AI Pipelines and Kubeflow Pipelines."""
