"""From the workload file to what components and Beam are given."""
