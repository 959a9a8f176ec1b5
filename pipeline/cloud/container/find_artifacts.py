"""The task that replaces a resolver on Kubeflow Pipelines: finds artifacts of earlier runs by their records.

python -m slipway.pipeline.cloud.container.find_artifacts --given={{$}} --queries=JSON --records=ADDRESS

The artifact that it finds becomes its output, at the artifact's own address. If there is none yet, the
output says so, and `kubeflow_task` omits that input. Imports TFX.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.artifact_query import ArtifactQuery
from slipway.pipeline.cloud.container.artifact_records import ArtifactRecords
from slipway.pipeline.cloud.container.kubeflow_input import ABSENT, PLACE_VARIABLE, for_tfx, local_path
from slipway.pipeline.cloud.executor_input import ExecutorInput, ExecutorOutput, filled
from slipway.pipeline.exit_codes import FAILED
from slipway.pipeline.terminal.printable import say


def find(
    given: ExecutorInput, queries: Mapping[str, str], records: ArtifactRecords, *, place: str = ""
) -> ExecutorOutput:
    """Look for the artifacts.

    Args:
        queries: a filter for each output.
        place: see `kubeflow_input.local_path`.

    Raises:
        ComponentError: a filter cannot be read, or a store refuses or does not answer.
    """
    output: ExecutorOutput = {"artifacts": {}}
    known = for_tfx(given, {}, place=place)
    # A query that depends on an artifact that was not found finds nothing.
    is_open = len(known["inputs"]["artifacts"]) == len(given.get("inputs", {}).get("artifacts", {}))
    for key, query in queries.items():
        found = records.find(ArtifactQuery(filled(query, known))) if is_open else None
        output["artifacts"][key] = {
            "artifacts": [
                {"metadata": {ABSENT: 1.0}}
                if found is None
                else {"uri": found["uri"], "metadata": found["metadata"]}
            ]
        }
    return output


def main(argv: Sequence[str]) -> None:
    """Run the program.

    Args:
        argv: the command line, without the program's name.

    Raises:
        SystemExit: with code 1 if a filter cannot be read or a store refuses; stderr says why.
    """
    parser = argparse.ArgumentParser()
    for name in ("--given", "--queries", "--records"):
        parser.add_argument(name, required=True)
    flags = parser.parse_args(argv)
    given: ExecutorInput = json.loads(flags.given)
    place = os.environ.get(PLACE_VARIABLE, "")
    try:
        output = find(given, json.loads(flags.queries), ArtifactRecords(flags.records), place=place)
    except ComponentError as error:
        say(f"error: {error.message}", *([f"hint: {error.hint}"] if error.hint else []))
        raise SystemExit(FAILED) from error
    for key, entry in output["artifacts"].items():
        uri = entry["artifacts"][0].get("uri") or given["outputs"]["artifacts"][key]["artifacts"][0]["uri"]
        # There is nothing to upload, but the launcher expects the folder.
        Path(local_path(uri, place=place)).mkdir(parents=True, exist_ok=True)
    file = Path(given["outputs"]["outputFile"])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(output), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
