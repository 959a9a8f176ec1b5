"""The fares workload: predicts the fare of a taxi trip, and whether the tip exceeds a fifth of the fare."""
