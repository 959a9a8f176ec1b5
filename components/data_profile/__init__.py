"""What is known of data by its rows, and kept so that later data can be compared with it."""
