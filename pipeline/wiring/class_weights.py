"""Turns a workload's class weights into the trainer's, keyed by the classes' codes."""

from slipway.pipeline.config import WorkloadConfig


def class_weights(config: WorkloadConfig) -> dict[str, float] | str | None:
    """Return `train.class_weights` keyed by each class's code, as text; `balanced` and None are unchanged."""
    weights, classes = config.train.class_weights, config.transform.classes
    if not isinstance(weights, dict):
        return weights
    return {str(classes.index(name)) if classes else name: weight for name, weight in weights.items()}
