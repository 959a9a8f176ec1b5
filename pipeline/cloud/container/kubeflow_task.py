"""The entry point of a task's container on Kubeflow Pipelines: `task`, adapted to Kubeflow's launcher.

python -m slipway.pipeline.cloud.container.kubeflow_task ARGUMENTS [--records=ADDRESS --keep=TYPE,...]

It also keeps records of the artifacts that later runs look for. Imports TFX.
"""

import argparse
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from absl import app  # type: ignore[import-untyped]
from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_run_executor as run_executor

from slipway.pipeline.cloud.complete_job import title_of
from slipway.pipeline.cloud.container import task
from slipway.pipeline.cloud.container.artifact_records import ArtifactRecords
from slipway.pipeline.cloud.container.complete_inputs import record_file_counts, require_complete_inputs
from slipway.pipeline.cloud.container.kubeflow_input import PLACE_VARIABLE, for_launcher, for_tfx
from slipway.pipeline.cloud.container.scheduled_input import fill_scheduled_span
from slipway.pipeline.cloud.executor_input import ExecutorInput, ExecutorOutput


def parse(argv: Sequence[str]) -> tuple[argparse.Namespace, Any]:
    """Parse our own arguments and those of TFX's entry point.

    Args:
        argv: the command line, with the program's name first.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", default="")
    parser.add_argument("--keep", default="")
    parser.add_argument("--producers", default="")
    own, rest = parser.parse_known_args(argv[1:])
    return own, run_executor._parse_flags([argv[0], *rest])


def main(parsed: tuple[argparse.Namespace, Any]) -> None:
    """Run one executor.

    Args:
        parsed: the flags, as `parse` returns them.

    Raises:
        SystemExit: see `task.main`.
    """
    own, (flags, beam_args) = parsed
    given: ExecutorInput = json.loads(flags.json_serialized_invocation_args)
    declared = json.loads(flags.json_serialized_inputs_spec_args or "{}")
    place = os.environ.get(PLACE_VARIABLE, "")
    producers = dict(pair.split("=", 1) for pair in own.producers.split(",") if pair)
    with task.exit_on_known_errors():
        fill_scheduled_span(given)
        require_complete_inputs(given, producers=producers, place=place)
    understood = for_tfx(given, declared, place=place)
    flags.json_serialized_invocation_args = json.dumps(understood)
    for entry in understood["outputs"]["artifacts"].values():
        for artifact in entry["artifacts"]:
            # TFX's own launcher creates these folders; without ML Metadata, a missing one is an error.
            Path(artifact["uri"]).mkdir(parents=True, exist_ok=True)
    task.main((flags, beam_args))
    file = Path(given["outputs"]["outputFile"])
    output = for_launcher(json.loads(file.read_text(encoding="utf-8")), given, place=place)
    record_file_counts(output, given, place=place)
    file.write_text(json.dumps(output), encoding="utf-8")
    if own.records:
        with task.exit_on_known_errors():
            keep_records(given, output, records=ArtifactRecords(own.records), titles=own.keep.split(","))


def keep_records(
    given: ExecutorInput, output: ExecutorOutput, *, records: ArtifactRecords, titles: Sequence[str]
) -> None:
    """Keep records of a task's outputs.

    Args:
        given, output: the ExecutorInput from the launcher, and the ExecutorOutput for it.
        titles: the types that later runs look for.
    """
    for key, entry in given["outputs"].get("artifacts", {}).items():
        if title_of(entry["artifacts"][0]["type"]) not in titles:
            continue
        changed = output.get("artifacts", {}).get(key, {"artifacts": []})["artifacts"]
        for place, artifact in enumerate(entry["artifacts"]):
            new = changed[place] if place < len(changed) else {}
            uri = new.get("uri") or artifact["uri"]
            metadata = {**artifact.get("metadata", {}), **new.get("metadata", {})}
            records.keep({"name": uri, "uri": uri, "type": artifact["type"], "metadata": metadata})


if __name__ == "__main__":
    app.run(main, flags_parser=parse)
