"""A preflight's result as JSON, as far as we read it; `slipway.components.preflight.result` writes it."""

from typing import TypedDict


class SliceName(TypedDict):
    """The name of a slice, as `train.tpu` has it."""

    name: str


class StepResult(TypedDict, total=False):
    """The memory of one device, in bytes: what a step takes, and what there is; None: not known."""

    peak_bytes: int | None
    available_bytes: int | None


class EstimateResult(TypedDict, total=False):
    """The least times and costs; None: not known. `bound`: what holds a step up; `price`: in words."""

    step_s: float
    bound: str
    examples_per_s: float
    training_s: float | None
    cost_usd: float | None
    price: str


class FindingResult(TypedDict):
    """A finding: its severity, what was found, and the remedy."""

    severity: str
    message: str
    remedy: str


class SliceResult(TypedDict):
    """One slice; `step` and `estimate` are None where the step was not compiled."""

    slice: SliceName
    batch_size: int
    can_train: bool
    step: StepResult | None
    estimate: EstimateResult | None
    findings: list[FindingResult]


class Rent(TypedDict, total=False):
    """The command that rents the slice to take."""

    command: str


class PreflightResult(TypedDict, total=False):
    """All slices, and which to take: its name, the keys to set, and how to rent it."""

    workload: str
    made_at: str
    estimates: str
    prices_of: str
    slices: list[SliceResult]
    recommended: str | None
    keys: dict[str, object]
    rent: Rent
