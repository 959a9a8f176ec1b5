"""What a version's manifest tells of the model: plain data, whose every key may be missing."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

from slipway.components.saved_model.signatures import PlainSignature


class About(TypedDict, total=False):
    """What the workload says of itself.

    Attributes:
        model, preprocessing_fn: dotted paths.
        classes: names in the order of the label's codes.
        task: what the model is for in the words of the Hugging Face Hub, as `tabular-classification`.
        pretrained: the file of weights that the training began with: its path and its sha256.
    """

    workload: str
    description: str
    source: str
    label: str
    model: str
    preprocessing_fn: str
    classes: list[str]
    task: str
    pretrained: dict[str, str]


class ModelPapers(TypedDict, total=False):
    """The model: its signatures by name; one SHA-256 over its files."""

    signatures: Mapping[str, PlainSignature]
    digest: str


class DataPapers(TypedDict, total=False):
    """The data: where it comes from, its digest and span, and its rows, from Ingest's summary."""

    source: str
    digest: str
    span: str
    rows_in: int
    rows_out: dict[str, int]
    rejected: dict[str, int]
    unlabelled: int


class DataGatePapers(TypedDict, total=False):
    """What the data gate said, its findings in words, and the `reason` for which they were let pass."""

    message: str
    findings: list[str]
    overrides: list[dict[str, str]]


class SchemaPapers(TypedDict, total=False):
    """The schema of the raw data.

    Attributes:
        digest: SHA-256 of its file.
        columns: the type of each raw column by name.
        needed: those that no row may lack when the model is asked.
    """

    digest: str
    columns: dict[str, str]
    needed: list[str]


class GatePapers(TypedDict):
    """The model gate's answer in words, its checks, and what was let pass, as its verdict has them."""

    reasons: list[str]
    checks: list[Mapping[str, object]]
    overrides: list[Mapping[str, object]]


class Republished(TypedDict):
    """Which version was published again in place of which, when (ISO 8601), by whom, and why."""

    version: int
    instead_of: int
    at: str
    by: str
    reason: NotRequired[str]


class SbomPapers(TypedDict):
    """The version's file that lists the software of the training, and its SHA-256."""

    file: str
    sha256: str


class Papers(TypedDict, total=False):
    """Where a model comes from and how good it is.

    Attributes:
        run: id of the run that pushed it; `pushed_at`: when, ISO 8601.
        code: one SHA-256 for each package of code, by its name.
        metrics: overall, by name; `slices`: by slice and name.
        exports: the `exports.json` of the model's smaller forms.
        task, pretrained: as `About` has them.
    """

    workload: str
    description: str
    label: str
    classes: list[str]
    task: str
    run: str
    pushed_at: str
    model: ModelPapers
    code: dict[str, str]
    pretrained: dict[str, str]
    data: DataPapers
    data_gate: DataGatePapers
    schema: SchemaPapers
    metrics: dict[str, float]
    baseline_metrics: dict[str, float]
    slices: dict[str, dict[str, float]]
    gate: GatePapers
    exports: Mapping[str, object]
    stack: dict[str, str]
    sbom: SbomPapers
    republished: Republished
