"""Helpers for fast unit tests of your preprocessing, model and components; see docs/testing.md.

Importing this package does not import TFX; each function imports it when called.
"""

import os

# Keras 3, as in every process of a run; otherwise importing tensorflow_transform would select Keras 2.
os.environ.setdefault("TF_USE_LEGACY_KERAS", "0")

from slipway.pipeline.testing.artifacts import blessed_model, schema_of, statistics_of, tiny_examples
from slipway.pipeline.testing.component import run_component
from slipway.pipeline.testing.transform import Table, transformed, transformed_table

__all__ = [
    "Table",
    "blessed_model",
    "run_component",
    "schema_of",
    "statistics_of",
    "tiny_examples",
    "transformed",
    "transformed_table",
]
