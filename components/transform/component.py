"""Transform: TFX's own component, with an executor of ours."""

from tfx.components import Transform as TfxTransform
from tfx.dsl.components.base import executor_spec

from slipway.components.transform.executor import Executor


class Transform(TfxTransform):  # type: ignore[misc]
    """TFX's Transform, with the same inputs, outputs and parameters.

    What it does not know, such as statistics or another engine than Beam's inside the process, it has done
    by TFX's executor; its log says why.
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)
