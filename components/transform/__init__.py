"""Raw examples to features: TFT's analysis without a pipeline, its finished graph over large batches."""
