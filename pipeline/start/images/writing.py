"""Writes the plan as the files of a workload: plain code that the user owns."""

from slipway.pipeline.start.images.deciding import ImagePlan, pixel_range
from slipway.pipeline.start.images.inspection import ImageFacts
from slipway.pipeline.start.rendering import workload_files
from slipway.pipeline.start.writing import skew_limits

_METRICS = {
    "binary": ("binary_accuracy", "auc"),
    "multiclass": ("sparse_categorical_accuracy", "sparse_categorical_crossentropy"),
}


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
        "range": pixel_range(plan.facts),
        "levels": ", ".join(map(str, _levels(plan.facts))),
        "pixels": plan.height * plan.width * plan.channels,
    }
    return workload_files(name, values, about="Classifies images", folder="templates/images")


def _levels(facts: ImageFacts) -> tuple[float, float]:
    """Return the pixels of a dark and of a bright image, of the type that the data has."""
    least, greatest = pixel_range(facts) or (0, 200)
    return (float(least), float(greatest)) if facts.has_fractions else (int(least), int(greatest))
