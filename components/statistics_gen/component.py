"""StatisticsGen: TFX's own component with a faster executor."""

from tfx.components import StatisticsGen as TfxStatisticsGen
from tfx.dsl.components.base import executor_spec

from slipway.components.statistics_gen.executor import Executor


class StatisticsGen(TfxStatisticsGen):  # type: ignore[misc]
    """TFX's StatisticsGen, with the same inputs, outputs and parameters.

    If the executor does not support a node's settings, it runs TFX's own executor and logs the reason.
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)
