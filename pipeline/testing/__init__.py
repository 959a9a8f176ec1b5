"""For unit tests of your own preprocessing, model and component, each in seconds: see docs/testing.md.

Importing it imports no TFX; each function does, when it is called.
"""

import os

# Keras 3, as in every process of a run; importing tensorflow_transform would choose Keras 2 for the test.
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
