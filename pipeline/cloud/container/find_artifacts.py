"""The task that replaces a resolver on Kubeflow Pipelines: finds artifacts of earlier runs by their records.

python -m slipway.pipeline.cloud.container.find_artifacts --given={{$}} --queries=JSON --records=ADDRESS \
    [--fetch=KEY,...]

Its output is a copy of the artifact that it finds: the launcher ends a task with an output at an address that
is not below its own run's folder (`KeyFromURI` in backend/src/v2/objectstore of kubeflow/pipelines). If there
is none yet, the output says so, and `kubeflow_task` omits that input. Imports TFX.
"""

import argparse
import json
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.artifact_query import ArtifactQuery
from slipway.pipeline.cloud.container.artifact_records import ArtifactRecords
from slipway.pipeline.cloud.container.kubeflow_input import (
    ABSENT,
    PLACE_VARIABLE,
    STORE_VARIABLE,
    for_tfx,
    local_path,
)
from slipway.pipeline.cloud.executor_input import ExecutorInput, ExecutorOutput, filled
from slipway.pipeline.exit_codes import FAILED
from slipway.pipeline.terminal.printable import say


def find(
    given: ExecutorInput,
    queries: Mapping[str, str],
    records: ArtifactRecords,
    *,
    fetched: Collection[str],
    place: str = "",
) -> ExecutorOutput:
    """Look for the artifacts, and copy them to the folders of the outputs.

    Args:
        queries: a filter for each output.
        fetched: the outputs whose files a task reads; of the others, only the metadata is needed.
        place: see `kubeflow_input.local_path`.

    Raises:
        ComponentError: a filter cannot be read, or a store refuses or does not answer.
    """
    output: ExecutorOutput = {"artifacts": {}}
    known = for_tfx(given, {}, place=place)
    # A query that depends on an artifact that was not found finds nothing.
    is_open = len(known["inputs"]["artifacts"]) == len(given.get("inputs", {}).get("artifacts", {}))
    for key, query in queries.items():
        [asked] = given["outputs"]["artifacts"][key]["artifacts"]
        folder = Path(local_path(asked["uri"], place=place))
        folder.mkdir(parents=True, exist_ok=True)  # the launcher expects it, even with nothing to upload
        found = records.find(ArtifactQuery(filled(query, known))) if is_open else None
        if found is not None and key in fetched:
            records.fetch(found, folder)
        metadata: dict[str, object] = {ABSENT: 1.0} if found is None else found["metadata"]
        output["artifacts"][key] = {"artifacts": [{"metadata": metadata}]}
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
    parser.add_argument("--fetch", default="")
    flags = parser.parse_args(argv)
    given: ExecutorInput = json.loads(flags.given)
    place = os.environ.get(PLACE_VARIABLE, "")
    records = ArtifactRecords(flags.records, store=os.environ.get(STORE_VARIABLE, ""))
    try:
        output = find(given, json.loads(flags.queries), records, fetched=flags.fetch.split(","), place=place)
    except ComponentError as error:
        say(f"error: {error.message}", *([f"hint: {error.hint}"] if error.hint else []))
        raise SystemExit(FAILED) from error
    file = Path(given["outputs"]["outputFile"])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(output), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
