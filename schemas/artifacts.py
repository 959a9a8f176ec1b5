"""Artifact types of this project's own, beside TFX's standard ones. Imports TFX.

Each TYPE_NAME is `schemas.` and the class's name, as metadata stores hold it. On Kubeflow and Vertex AI, TFX
imports the class by it; what runs there (pipeline/cloud) puts `slipway.` before it.
"""

from tfx.types.artifact import Artifact


class Quarantine(Artifact):
    """Rows that Ingest could not make examples of.

    The folder holds `rows-*.jsonl` (one JSON object a row: file, line, offset, column, reason, detail, and
    the content as `raw` or `raw_base64`) and `summary.json` (rows in, out by split, rejected by reason, what
    is read differently than written by column, and the digest of the input). Custom properties: `rows_in`,
    `rows_out`, `rows_rejected` and `digest`.
    """

    TYPE_NAME = "schemas.Quarantine"


class ServingReport(Artifact):
    """The exported model measured with TensorFlow alone: `report.json`, see components/serving_check."""

    TYPE_NAME = "schemas.ServingReport"


class DataVerdict(Artifact):
    """The data gate's verdict on a data set that it let pass.

    The folder holds `verdict.json`, the same for people in `verdict.txt`, and copies of the statistics it is
    about (`statistics/Split-*/FeatureStats.pb`) and of those it compared them with (`reference/...`): what
    comes next is compared with them. Custom properties: `passed` (1), `findings`, `data` (the digest of the
    input) and, where somebody let it pass, `accepted` with the reason.
    """

    TYPE_NAME = "schemas.DataVerdict"


class ReferenceReport(Artifact):
    """The scores of scikit-learn's models: `report.json`, see components/reference_models."""

    TYPE_NAME = "schemas.ReferenceReport"


class PreflightReport(Artifact):
    """The prediction of a training on a TPU: `preflight.json`, see components/preflight and docs/tpu.md."""

    TYPE_NAME = "schemas.PreflightReport"
