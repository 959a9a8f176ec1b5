"""Logs a followed run on Vertex AI to an experiment there: its settings, its metrics and its outcome."""

import json
from collections.abc import Mapping

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.services.service import JobPhase
from slipway.pipeline.cloud.services.vertex_metadata import VertexMetadata
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.errors import PipelineError
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.tracking.run_facts import final_metrics, settings

_STATES: dict[JobPhase, str] = {"complete": "COMPLETE", "cancelled": "CANCELLED"}


def note_in_experiment(
    config: WorkloadConfig,
    record: RunRecord,
    phase: JobPhase,
    *,
    kept: Mapping[str, object] | None = None,
) -> str:
    """Log a finished run if `cloud.vertex.experiment` names an experiment.

    Args:
        config: the workload's settings, from the command that follows the run.
        phase: the final state of the run.
        kept: the settings that the run was submitted with, as JSON, which may be others by now; None: those
            of `config` are logged.

    Returns:
        What was done or why not, in words; empty if no experiment is named.
    """
    experiment = config.cloud.vertex.experiment
    if experiment is None or config.cloud.service != "vertex":
        return ""
    if record.workload != config.name:  # `follow` takes any run's name
        return (
            f"not logged to the experiment {experiment}: it is a run of {record.workload}, "
            f"not of {config.name}"
        )
    try:
        VertexMetadata(config).note_run(
            experiment,
            record.run_id,
            settings=settings(kept or json.loads(config.model_dump_json(by_alias=True))),
            metrics={point.name: point.value for point in final_metrics(record)},
            state=_STATES.get(phase, "FAILED"),
        )
    except (PipelineError, ComponentError) as error:
        return f"not logged to the experiment {experiment}: {error}"
    return f"Logged to the experiment {experiment}."
