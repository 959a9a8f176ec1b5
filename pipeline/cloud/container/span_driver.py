"""Ingest's driver: TFX's own, but it finds our artifact types and a scheduled run's span. Imports TFX.

python -m slipway.pipeline.cloud.container.span_driver ARGUMENTS
    [--scheduled_at=MOMENT --lag_days=N --time_zone=ZONE]
"""

import argparse
import json
import sys
from collections.abc import Sequence

from absl import app  # type: ignore[import-untyped]

from slipway.components.errors import ComponentError
from slipway.components.large_imports import large_imports
from slipway.pipeline.cloud.container.task import find_our_types
from slipway.pipeline.cloud.scheduled_span import span_of
from slipway.pipeline.exit_codes import FAILED

with large_imports(keep=True):  # the process is the driver's own
    from tfx.orchestration.kubeflow.v2.file_based_example_gen import driver
    from tfx.types.standard_component_specs import RANGE_CONFIG_KEY


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of TFX's driver; in a scheduled run, add the span to Ingest's parameters.

    Args:
        argv: the command line, with the program's name first.

    Raises:
        ComponentError: the service did not say when the run was scheduled.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--scheduled_at")
    parser.add_argument("--lag_days", type=int)
    parser.add_argument("--time_zone")
    own, rest = parser.parse_known_args(argv[1:])
    parsed: argparse.Namespace
    if own.scheduled_at is None:
        parsed = driver._parse_flags([argv[0], *rest])
        return parsed
    try:
        span = span_of(own.scheduled_at, lag_days=own.lag_days, time_zone=own.time_zone)
    except ValueError as error:
        raise ComponentError(
            f"the service did not say when this run was scheduled: {own.scheduled_at!r}",
            hint="leave cloud.schedule.lag_days out: runs then take the latest span",
        ) from error
    parsed = driver._parse_flags([argv[0], *rest])
    given = json.loads(parsed.json_serialized_invocation_args)
    only = {"start_span_number": span, "end_span_number": span}
    given["inputs"].setdefault("parameterValues", {})[RANGE_CONFIG_KEY] = json.dumps({"static_range": only})
    parsed.json_serialized_invocation_args = json.dumps(given)
    return parsed


def parse_or_exit(argv: Sequence[str]) -> argparse.Namespace:
    """Like `parse`, but an error ends the process with two lines and the exit code of a failed task."""
    try:
        return parse(argv)
    except ComponentError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(FAILED) from error


if __name__ == "__main__":
    find_our_types()
    app.run(driver.main, flags_parser=parse_or_exit)
