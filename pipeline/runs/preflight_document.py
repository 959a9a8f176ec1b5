"""The JSON of a preflight's result, as far as it is read; `slipway.components.preflight.result` writes it."""

from typing import NotRequired, TypedDict


class SliceName(TypedDict):
    """The name of a slice, as in `train.tpu`."""

    name: str


class StepResult(TypedDict, total=False):
    """The memory of one device in bytes: the peak of a step, and what is available; None if unknown."""

    peak_bytes: int | None
    available_bytes: int | None


class EstimateResult(TypedDict, total=False):
    """Lower bounds of times and costs; None if unknown.

    `bound` is what limits the step's speed; `price` is in words.
    """

    step_s: float
    bound: str
    examples_per_s: float
    training_s: float | None
    cost_usd: float | None
    price: str


class FindingResult(TypedDict):
    """A finding: the name of its rule, its severity, what was found, and the remedy."""

    rule: NotRequired[str]
    severity: str
    message: str
    remedy: str


class SliceResult(TypedDict):
    """One slice; `step` and `estimate` are None if the step was not compiled."""

    slice: SliceName
    batch_size: int
    can_train: bool
    step: StepResult | None
    estimate: EstimateResult | None
    findings: list[FindingResult]


class Rent(TypedDict, total=False):
    """The command that rents the recommended slice."""

    command: str


class PreflightResult(TypedDict, total=False):
    """All slices, and the recommended one: its name, the keys to set, and how to rent it."""

    workload: str
    made_at: str
    estimates: str
    prices_of: str
    slices: list[SliceResult]
    recommended: str | None
    keys: dict[str, object]
    rent: Rent
