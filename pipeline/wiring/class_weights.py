"""Turns the class weights of a workload into those of the trainer: by the classes' codes."""

from slipway.pipeline.config import WorkloadConfig


def class_weights(config: WorkloadConfig) -> dict[str, float] | str | None:
    """`train.class_weights` by the code of each class, as text; `balanced` and None stay what they are."""
    weights, classes = config.train.class_weights, config.transform.classes
    if not isinstance(weights, dict):
        return weights
    return {str(classes.index(name)) if classes else name: weight for name, weight in weights.items()}
