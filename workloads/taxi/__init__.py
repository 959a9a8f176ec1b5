"""The Chicago taxi workload: predicts whether the tip exceeds a fifth of the fare."""
