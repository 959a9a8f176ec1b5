"""Entry point of the stock TFX Trainer: `run_fn='slipway.components.trainer.run_fn.run_fn'`.

Lays out the training job, runs it in a separate process, and exports the SavedModel from the resulting
weights.
"""

import json
import tempfile
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from slipway.components import progress
from slipway.components.accelerators import keep_to_cpu
from slipway.components.code_digests import CODE, code_digests
from slipway.components.errors import ComponentError
from slipway.components.finite_json import finite
from slipway.components.saved_model.digest import SBOM, SBOM_FOLDER
from slipway.components.saved_model.digest_files import keep_digest
from slipway.components.trainer.checkpoint_storage import alone, checkpoint_dir, forget_checkpoints
from slipway.components.trainer.job import HISTORY_FILE, JOB_FILE, RESULT_FILE, WEIGHTS_FILE, TrainingJob
from slipway.components.trainer.job_layout import lay_out, read_settings, some_rows, tuned_values
from slipway.components.trainer.launch import Elsewhere, launch
from slipway.components.trainer.model_run import load_weights
from slipway.components.trainer.raw_columns import list_columns, serving_columns
from slipway.components.trainer.same_answers import require_same_answers, sample_answers
from slipway.components.trainer.saved_model_export import ServedModel, require_tensorflow_backend
from slipway.components.trainer.settings.export import Export, ExportKind
from slipway.components.trainer.user_model import build_model, describe

LOG_FOLDER = "tensorboard"
EXPORTS_FOLDER = "exports"
TRAINING_FOLDER = "training"


def run_fn(fn_args: Any) -> None:
    """Train the model and export it.

    Args:
        fn_args: `tfx.components.FnArgs` with transform_output, schema_path, train_files, eval_files,
            serving_model_dir, model_run_dir; hyperparameters, which a Tuner found and which override the
            workload's; and custom_config with the plain values
                model: dotted path of `build_model`;
                hyperparameters: a mapping for `build_model`;
                batch_size, epochs, seed: integers;
                interpreter: path of the Python that trains; None: this one;
                label: the name of the label among the transformed columns, or several, see `labels`;
                raw_label: the raw column that the label is made from, which no request carries;
                weight: the name of the transformed column with each example's weight; None: equal weights;
                group: the raw column that names each row's group, see `TrainingJob`; None: there is none;
                class_weights: see `TrainingJob`;
                pass_through: raw or transformed columns that are not model inputs; no request carries them;
                exports: kinds of smaller forms, keys of `litert_export.KINDS`;
                images: the shapes of columns of raw bytes, see `transformed_features.features_of`;
                the settings of `job_layout.FLAT_GROUPS` and `SECTIONS`;
                pretrained: a weights file to start from, see `pretrained.Pretrained`; optional;
                training_job: other machines to train on, see `remote.vertex.VertexTraining`; optional.

    Raises:
        ComponentError: a setting, the data or the user's model is wrong, or the training process died.
    """
    keep_to_cpu()  # the training process chooses its own device
    settings, machines = read_settings(fn_args.custom_config)
    code = code_digests([settings["model"]])  # now: it may be edited while it trains
    require_tensorflow_backend()
    transform = tft.TFTransformOutput(fn_args.transform_output)
    tuned = tuned_values(fn_args.hyperparameters)
    with tempfile.TemporaryDirectory(prefix="training-") as folder, ExitStack() as stack:
        job = lay_out(
            settings,
            files=(fn_args.train_files, fn_args.eval_files),
            transform=transform,
            hyperparameters=settings["hyperparameters"] | tuned,
            folder=Path(folder),
        )
        job = replace(
            job,
            checkpoint_dir=checkpoint_dir(job, run=fn_args.model_run_dir),
            log_dir=f"{fn_args.model_run_dir}/{LOG_FOLDER}",
        )
        stack.enter_context(alone(job))
        # While the process starts and trains, build the model to export, and try to convert it untrained.
        served, result = launch(
            job,
            interpreter=settings["interpreter"],
            meanwhile=lambda: _served_model(
                job,
                transform,
                fn_args.schema_path,
                apart=(settings["raw_label"], *settings["pass_through"]),
                exports=settings["exports"],
            ),
            elsewhere=Elsewhere(machines, f"{fn_args.model_run_dir}/{TRAINING_FOLDER}") if machines else None,
        )
        load_weights(served.model, Path(folder, WEIGHTS_FILE))
        trained = result.pop("answers", [])
        tf.io.gfile.makedirs(fn_args.model_run_dir)
        for name in (JOB_FILE, HISTORY_FILE, WEIGHTS_FILE):
            tf.io.gfile.copy(str(Path(folder, name)), f"{fn_args.model_run_dir}/{name}", overwrite=True)
        environment = f"{_artifact(fn_args.serving_model_dir)}/{SBOM_FOLDER}"
        tf.io.gfile.makedirs(environment)
        tf.io.gfile.copy(str(Path(folder, SBOM)), f"{environment}/{SBOM}", overwrite=True)
        with tf.io.gfile.GFile(f"{environment}/{CODE}", "w") as file:
            file.write(json.dumps(code, indent=2) + "\n")
        served.save(fn_args.serving_model_dir)
        answers = sample_answers(served.model, job.inputs, batch_size=job.batch_size)
        require_same_answers(trained, answers, job.model)
        keep_digest(fn_args.serving_model_dir)
        exports = _write_exports(job, served.model, settings["exports"], fn_args.serving_model_dir)
        with tf.io.gfile.GFile(f"{fn_args.model_run_dir}/{RESULT_FILE}", "w") as file:
            told = finite({**result, "tuned": tuned, "exports": exports})
            file.write(json.dumps(told, indent=2) + "\n")
        forget_checkpoints(job)


def _write_exports(
    job: TrainingJob, model: Any, kinds: Sequence[ExportKind], serving_model_dir: str
) -> list[Export]:
    """Write smaller forms of the model beside the folder that is served, which is all that a server reads.

    Returns:
        The entries of `litert_export.write_exports`, one for each kind.
    """
    if not kinds:
        return []
    from slipway.components.trainer.litert_export import (
        CALIBRATION_ROWS,
        EVAL_LIMIT_ROWS,
        Trained,
        write_exports,
    )

    if not job.eval_files:
        raise ComponentError("train.exports needs an eval split to measure on")
    calibration, *_ = some_rows(job.train_files, job, rows=CALIBRATION_ROWS)
    examples, labels, weights = some_rows(job.eval_files, job, rows=EVAL_LIMIT_ROWS)
    trained = Trained(
        model=model,
        features=job.inputs,
        calibration=calibration,
        examples=examples,
        labels=labels,
        weights=weights,
    )
    progress.report("exports " + ", ".join(kinds))
    return write_exports(trained, kinds, f"{_artifact(serving_model_dir)}/{EXPORTS_FOLDER}")["exports"]


def _artifact(serving_model_dir: str) -> str:
    """Return the folder of the Model artifact."""
    return serving_model_dir.rstrip("/").rpartition("/")[0]


def _served_model(
    job: TrainingJob,
    transform: Any,
    schema_path: str,
    *,
    apart: Collection[str],
    exports: Sequence[ExportKind],
) -> ServedModel:
    if not schema_path:
        raise ComponentError(
            "the Trainer got no schema", hint="wire schema= of the Trainer in pipeline/dag.py"
        )
    with tf.io.gfile.GFile(schema_path) as file:
        schema = text_format.Parse(file.read(), schema_pb2.Schema())
    try:
        model = build_model(job.model, job.inputs, job.hyperparameters)
        served = ServedModel(
            model=model,
            label=job.label,
            transform=transform,
            features=job.inputs,
            serving_columns=serving_columns(schema, apart),
            list_columns=list_columns(schema),
        )
    except ComponentError:
        raise
    except Exception as error:
        raise ComponentError(f"{job.model} failed: {describe(error, job.model)}") from error
    if exports:
        from slipway.components.trainer.litert_export import require_convertible

        require_convertible(model, job.inputs, exports)
    return served
