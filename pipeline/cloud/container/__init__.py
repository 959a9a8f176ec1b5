"""The code that runs inside a task's container on Vertex AI or Kubeflow."""
