"""Tells, in a process forked from the warm one, what is loaded of what is put off; then uses all of it."""

import importlib
import pkgutil
import sys
from types import ModuleType

HEAVY = {
    "IPython", "boto3", "google.cloud.aiplatform", "google.cloud.pubsub", "ipywidgets", "keras_tuner",
    "kubernetes", "nltk", "sacrebleu", "scipy.stats", "sklearn",
}  # fmt: skip


def main(arguments: list[str]) -> int:
    """Prints which are loaded after the imports of a run, and how many of those put off could be used."""
    import slipway.pipeline.dag  # noqa: F401
    from slipway.components.large_imports import PUT_OFF

    print("loaded:", sorted(HEAVY & sys.modules.keys()))
    used = 0
    for importer, entries in PUT_OFF.items():
        held = vars(importlib.import_module(importer))
        for entry in entries:
            module, _, name = entry.partition(":")
            own = pkgutil.resolve_name(entry) if name else importlib.import_module(module)
            for value in held.values():
                if isinstance(value, ModuleType) and value.__name__ == module:
                    assert value.__spec__.loader is None or value is sys.modules[module], entry
                    assert not name or getattr(value, name) is own, entry
            used += 1
    from keras.wrappers import SKLearnClassifier
    from sklearn.base import BaseEstimator
    from tensorflow_model_analysis.utils import math_util

    assert issubclass(SKLearnClassifier, BaseEstimator)
    assert math_util.stats.t.ppf(0.5, 3) == 0
    print("used:", used)
    return 0
