"""Models of scikit-learn on the same examples: whether the network earns its cost."""

from typing import Literal

ReferenceModel = Literal["logistic", "boosted_trees"]
