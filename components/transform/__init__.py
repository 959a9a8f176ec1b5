"""Turns raw examples into features: TFT's analysis without Beam, then its graph over large batches."""
