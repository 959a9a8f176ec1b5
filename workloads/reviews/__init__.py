"""The reviews workload: classifies critics' statements about films as positive or negative."""
