"""Writes the plan as the files of a workload: plain code that the user owns."""

from slipway.pipeline.start.images.deciding import ImagePlan
from slipway.pipeline.start.rendering import workload_files
from slipway.pipeline.start.writing import skew_limits

_METRICS = {
    "binary": ("binary_accuracy", "auc"),
    "multiclass": ("sparse_categorical_accuracy", "sparse_categorical_crossentropy"),
}
_BYTE = 255


def files_of(plan: ImagePlan, *, name: str, source: str) -> dict[str, str]:
    """Return the files of a workload: path relative to the project's root -> content.

    Args:
        name: the workload's name: a letter, then lower-case letters, digits and _.
        source: `data.source`.
    """
    values: dict[str, object] = {
        "name": name,
        "source": source,
        "plan": plan,
        "facts": plan.facts,
        "description": f"Predicts the class of an image, one of {len(plan.classes)}.",
        "metrics": _METRICS[plan.task],
        "gate": skew_limits(plan.facts.images),
        "scale": _scale(plan),
        "pixels": plan.height * plan.width * plan.channels,
    }
    return workload_files(name, values, about="Classifies images", folder="templates/images")


def _scale(plan: ImagePlan) -> int:
    """Return the factor that maps the pixels of an npz to 0..255: 255 if they are in 0..1, else 1."""
    return _BYTE if plan.facts.has_fractions and plan.facts.highest <= 1 else 1
