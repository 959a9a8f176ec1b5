"""What the data looks like (*.pbtxt), what a workload file may hold, and artifact types of our own."""
