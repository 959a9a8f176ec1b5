"""What runs inside the container of a task on Vertex AI or Kubeflow."""
