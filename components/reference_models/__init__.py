"""Models of scikit-learn trained on the same examples, to show whether the network earns its cost."""

from typing import Literal

ReferenceModel = Literal["logistic", "boosted_trees"]
