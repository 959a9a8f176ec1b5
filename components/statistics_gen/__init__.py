"""Computes the statistics of examples: TFDV's generators over large batches, without Beam."""

import tfx  # noqa: F401  (before TFDV: it patches what TFDV imports)
