"""The schemas of the data, and that of the workload file."""
