"""TFX's Evaluator, with an executor that measures whole batches of rows."""

from tfx.components.evaluator.component import Evaluator as StockEvaluator
from tfx.dsl.components.base import executor_spec

from slipway.components.evaluator.executor import Executor


class Evaluator(StockEvaluator):
    """TFX's Evaluator: the same channels, the same parameters, the same results.

    If its executor does not support something, such as thresholds, TFX's executor takes over.
    """

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)
