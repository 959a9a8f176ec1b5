"""Writes the span of a scheduled run into Ingest's file patterns, on Kubeflow Pipelines. Pure.

Its backend fills in no time for a recurring run: a macro such as [[ScheduledTime]] reaches the tasks as it is
(kubeflow/pipelines issue 12494), since the run is a workflow that was compiled before. Argo, which runs that
workflow, fills in the workflow's labels, one of which holds the scheduled time. So Ingest gets that time as a
parameter that its component does not have.
"""

import json
from datetime import UTC, datetime

from slipway.components.errors import ComponentError
from slipway.components.ingest.spans import at_span
from slipway.pipeline.cloud.executor_input import ExecutorInput
from slipway.pipeline.cloud.scheduled_span import span_of

SCHEDULED_AT = "scheduled_at"
"""The parameter that holds the scheduled time: seconds since 1970, as a text."""
LAG_DAYS = "lag_days"
"""The parameter that holds how many days before the scheduled day the span lies."""
INPUT_CONFIG = "input_config"
"""Ingest's own parameter, with the file patterns."""


def fill_scheduled_span(given: ExecutorInput) -> None:
    """Replace the span in Ingest's file patterns, and remove the two parameters; `given` is changed.

    Args:
        given: the ExecutorInput from the launcher; that of another task is left as it is, also if a
            component of one's own has a parameter of the same name.

    Raises:
        ComponentError: the scheduled time was not filled in, e.g. in a run that was started by hand.
    """
    values = given.get("inputs", {}).get("parameterValues", {})
    if not {SCHEDULED_AT, LAG_DAYS, INPUT_CONFIG} <= values.keys():
        return
    at, lag_days = str(values.pop(SCHEDULED_AT)), int(values.pop(LAG_DAYS))
    try:
        moment = datetime.fromtimestamp(int(at), UTC)
        span = span_of(moment.isoformat(), lag_days=lag_days, time_zone="UTC")
    except (ValueError, OverflowError, OSError) as error:
        raise ComponentError(
            f"the parameter {SCHEDULED_AT} is {at!r}, which is no time: it must be seconds since 1970, as "
            "Kubeflow writes it for a recurring run",
            hint="start a run by hand with the time to assume, as `date +%s` prints it; "
            "`cloud_runner.py schedule run-now` does so",
        ) from error
    config = json.loads(values[INPUT_CONFIG])
    for split in config["splits"]:
        split["pattern"] = at_span(split["pattern"], span)
    values[INPUT_CONFIG] = json.dumps(config)
