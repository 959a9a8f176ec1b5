"""Transform: TFX's own component with a faster executor."""

from tfx.components import Transform as TfxTransform
from tfx.dsl.components.base import executor_spec

from slipway.components.transform.executor import Executor


class Transform(TfxTransform):  # type: ignore[misc]
    """TFX's Transform, with the same inputs, outputs and parameters.

    If the executor does not support a node's settings, such as statistics, or an operation of its
    preprocessing_fn, it runs TFX's own executor and logs the reason.
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)
