"""What is known of each metric, and how a row adds to it. A new metric is entered here."""
