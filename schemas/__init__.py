"""The schemas of the data, that of the workload file, and artifact types of our own."""
