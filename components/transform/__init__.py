"""Transforms raw examples into features: TFT's analysis without Beam, then TFT's graph over large batches."""
