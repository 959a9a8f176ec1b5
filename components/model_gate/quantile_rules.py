"""Reports quantiles that cross: a lower quantile above a higher one is not a valid forecast. Pure."""

from collections.abc import Sequence

from slipway.components.metrics.definitions import plain_name
from slipway.components.model_gate.measured import Measured
from slipway.components.model_gate.verdict import OVERALL, Check


def quantile_checks(metrics: Sequence[str], overall: Measured) -> list[Check]:
    """Return a warning for each `quantile_crossing` that is not 0; only a threshold can stop the model.

    Args:
        metrics: names in `definitions.METRICS`, with or without an output's.
    """
    return [
        Check(
            metric=name,
            slice=OVERALL,
            required="0: no lower quantile above a higher one",
            got=overall.metrics[name],
            stops=False,
            note="slipway.components.trainer.models.quantiles.rising makes answers that cannot cross",
        )
        for name in metrics
        if plain_name(name) == "quantile_crossing" and overall.metrics.get(name, 0.0) > 0
    ]
