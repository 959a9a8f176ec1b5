"""ServingCheck: measures the exported model as a server would load it. Only ModelGate judges the results."""

import json
import tempfile
from pathlib import Path

from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.standard_artifacts import Examples, Model, ModelRun, Schema, TransformGraph
from tfx.utils import io_utils
from tfx.utils.path_utils import serving_model_path

from slipway.components.accelerators import keep_to_cpu
from slipway.components.saved_model.digest import PROPERTY
from slipway.components.saved_model.digest_files import model_digest
from slipway.components.serving_check.check import check_served_model
from slipway.components.serving_check.requests import read_rows
from slipway.components.serving_check.training_side import TrainingSide
from slipway.schemas.artifacts import ServingReport


@component
def ServingCheck(  # noqa: N802 (component constructors are nouns)
    model: InputArtifact[Model],
    model_run: InputArtifact[ModelRun],
    examples: InputArtifact[Examples],
    transform_graph: InputArtifact[TransformGraph],
    schema: InputArtifact[Schema],
    report: OutputArtifact[ServingReport],
    raw_label: Parameter[str],
    rows: Parameter[int],
    limit_s: Parameter[float],
    pass_through: Parameter[list[str]] = None,
) -> None:
    """Load the model with nothing but TensorFlow, query it with real and strange rows, and time it.

    Args:
        model_run: the Trainer's job and weights, for computing the answers to compare with.
        examples: the raw examples; rows of the split `eval` are sent.
        schema: of the raw examples.
        report: gets `report.json`, see `check.check_served_model`, with the digest of the model's files.
        raw_label: the column that the label is computed from, which no request contains.
        rows: number of real rows to send.
        limit_s: time limit of the clean process in seconds.
        pass_through: further columns that no request contains; None: none.

    Raises:
        ComponentError: there are no rows, or training's own answers cannot be computed. Problems of the
            served model are in the report instead.
    """
    keep_to_cpu()  # as in the process that serves
    files = [
        file
        for folder in artifact_utils.get_split_uris([examples], "eval")
        for file in fileio.glob(f"{folder}/*")
    ]
    training = TrainingSide(
        transform_graph=transform_graph.uri,
        model_run=model_run.uri,
        schema=io_utils.get_only_uri_in_dir(schema.uri),
        apart=(raw_label, *(pass_through or ())),
    )
    with tempfile.TemporaryDirectory(prefix="served-model-") as folder:
        # The clean process has no credentials for a store, and its load time must not measure the network.
        local = Path(folder, "model")
        io_utils.copy_dir(serving_model_path(model.uri), str(local))
        digest = model_digest(str(local))
        found = check_served_model(local, read_rows(files, rows=rows), training, limit_s=limit_s)
    with fileio.open(f"{report.uri}/report.json", "w") as file:
        file.write(json.dumps({**found, PROPERTY: digest}, indent=2))
