"""Slipway's own artifact types, in addition to TFX's standard ones. Imports TFX.

Each TYPE_NAME is `schemas.` and the class's name, as metadata stores hold it. On Kubeflow and Vertex AI, TFX
imports the class by that name; the code that runs there (pipeline/cloud) prepends `slipway.`.
"""

from tfx.types.artifact import Artifact


class Quarantine(Artifact):
    """The rows that Ingest could not convert to examples.

    The folder holds `rows-*.jsonl` (one JSON object per row: file, line, offset, column, reason, detail, and
    the content as `raw` or `raw_base64`) and `summary.json` (rows in, rows out by split, rows rejected by
    reason, values read differently than written by column, and the digest of the input). Custom properties:
    `rows_in`, `rows_out`, `rows_rejected` and `digest`.
    """

    TYPE_NAME = "schemas.Quarantine"


class ServingReport(Artifact):
    """Measurements of the exported model in TensorFlow alone: `report.json`, see components/serving_check."""

    TYPE_NAME = "schemas.ServingReport"


class DataVerdict(Artifact):
    """The data gate's verdict on a data set that it let pass.

    The folder holds `verdict.json`, a readable form of it in `verdict.txt`, and copies of the statistics that
    were judged (`statistics/Split-*/FeatureStats.pb`) and of those they were compared with (`reference/...`),
    because the next data set is compared with them. Custom properties: `passed` (1), `findings`, `data` (the
    digest of the input) and, if somebody accepted the data, `accepted` with the reason.
    """

    TYPE_NAME = "schemas.DataVerdict"


class ReferenceReport(Artifact):
    """The scores of scikit-learn's reference models: `report.json`, see components/reference_models."""

    TYPE_NAME = "schemas.ReferenceReport"


class PreflightReport(Artifact):
    """The prediction for a training on a TPU: `preflight.json`, see components/preflight and docs/tpu.md."""

    TYPE_NAME = "schemas.PreflightReport"
