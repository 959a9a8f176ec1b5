"""StatisticsGen: TFX's own component, with an executor of ours."""

from tfx.components import StatisticsGen as TfxStatisticsGen
from tfx.dsl.components.base import executor_spec

from slipway.components.statistics_gen.executor import Executor


class StatisticsGen(TfxStatisticsGen):  # type: ignore[misc]
    """TFX's StatisticsGen, with the same inputs, outputs and parameters.

    What its executor does not support, such as another engine than Beam's inside the process, it leaves to
    TFX's; its log says why.
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)
