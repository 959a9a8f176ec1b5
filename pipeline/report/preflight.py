"""The preflight section of a run's report page: TPU slices with estimates, findings, and settings."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from slipway.components.preflight.chip_specs import GIB
from slipway.components.preflight.finding import OF_THE_BACKEND
from slipway.pipeline.report.page_head import Fact
from slipway.pipeline.runs.preflight_document import FindingResult, PreflightResult, SliceResult, StepResult
from slipway.pipeline.runs.preflight_results import last, of_run
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.terminal.durations import seconds

_SHOWN_SLICES = 50
_SHOWN_FINDINGS = 100
_MARKS = {"error": "✗", "warning": "!", "note": "-"}


@dataclass(frozen=True)
class SliceRow:
    """One TPU slice.

    Attributes:
        verdict: the verdict with its mark.
        numbers: heading -> text, in the order of the columns; empty for an unknown estimate.
    """

    name: str
    is_recommended: bool
    verdict: str
    can_train: bool
    numbers: Mapping[str, str]


@dataclass(frozen=True)
class Preflight:
    """The content of the preflight section.

    Attributes:
        source: when the preflight was made, and by what.
        warning: how far its numbers can be trusted.
        slices: at most 50.
        findings: heading -> text of each, at most 100.
        left_out: the number of findings that are not in `findings`.
        keys: the options that set the recommended slice in the workload.
        command: the command that rents the slice; may be empty.
        cost: the cost of training on the recommended slice; None if it is not known.
    """

    source: str
    warning: str
    slices: tuple[SliceRow, ...]
    findings: tuple[Mapping[str, str], ...]
    left_out: int
    keys: str
    command: str
    cost: Fact | None


def preflight(record: RunRecord, output: Path) -> Preflight | None:
    """Return the run's preflight, or else the command's latest one for the workload, or None."""
    own = of_run(record)
    found = own or last(output, record.workload)
    return preflight_part(found, is_own=bool(own)) if found.get("slices") else None


def preflight_part(found: PreflightResult, *, is_own: bool) -> Preflight:
    """Return the preflight section.

    Args:
        found: the preflight's JSON; see `PreflightResult`.
        is_own: whether the run made the preflight, rather than the command.
    """
    slices = found["slices"]
    findings = [_finding(each["slice"]["name"], finding) for each in slices for finding in each["findings"]]
    by = "by this run's Preflight" if is_own else "by the preflight command, not by this run"
    return Preflight(
        source=f"made {found['made_at']} {by}",
        warning=found["estimates"],
        slices=tuple(_row(each, found["recommended"]) for each in slices[:_SHOWN_SLICES]),
        findings=tuple(findings[:_SHOWN_FINDINGS]),
        left_out=max(len(findings) - _SHOWN_FINDINGS, 0),
        keys=" ".join(f"--set {name}={value}" for name, value in found["keys"].items()),
        command=(found.get("rent") or {}).get("command", ""),
        cost=_cost(found),
    )


def _finding(name: str, found: FindingResult) -> dict[str, str]:
    severity = f"{_MARKS.get(found['severity'], '')} {found['severity']}"
    return {"slice": name, "severity": severity, "finding": found["message"], "remedy": found["remedy"]}


def _row(each: SliceResult, recommended: str | None) -> SliceRow:
    step, estimate = each["step"] or {}, each["estimate"] or {}
    training_s = estimate.get("training_s")
    return SliceRow(
        name=each["slice"]["name"],
        is_recommended=each["slice"]["name"] == recommended,
        verdict=_verdict(each),
        can_train=bool(each["can_train"]),
        numbers={
            "batch": f"{each['batch_size']:,}",
            "memory per device": _memory(step),
            "step, at least": _step(estimate.get("step_s")),
            "bound by": estimate.get("bound") or "",
            "throughput, at most": _words(estimate.get("examples_per_s"), "{:,.0f} examples/s"),
            "training, at least": "" if training_s is None else seconds(training_s),
            "cost, at least": _priced(_usd(estimate.get("cost_usd")), estimate.get("price")),
        },
    )


def _verdict(each: SliceResult) -> str:
    if each["can_train"]:
        return "✓ can train"
    # As on the screen: with the keys that the page names, errors of another backend than JAX are gone.
    errors = [found for found in each["findings"] if found["severity"] == "error"]
    is_wrong = any(found.get("rule") not in OF_THE_BACKEND for found in errors)
    return "✗ cannot train" if is_wrong else "? not compiled for a TPU"


def _memory(step: StepResult) -> str:
    peak, available = step.get("peak_bytes"), step.get("available_bytes")
    if not peak or not available:  # 0 where the compiler reports no number
        return ""
    return f"{peak / GIB:.2g} of {available / GIB:.1f} GiB ({peak / available:.0%})"


def _step(value_s: float | None) -> str:
    return "" if value_s is None else f"{value_s * 1000:.3g} ms"


def _words(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


def _usd(value: float | None) -> str:
    if value is None:
        return ""
    return "under $0.01" if value < 0.01 else f"${value:,.2f}"


def _priced(cost: str, price: str | None) -> str:
    return f"{cost}; {price}" if cost and price else cost


def _cost(found: PreflightResult) -> Fact | None:
    for each in found["slices"]:
        estimate = each["estimate"] or {}
        cost = estimate.get("cost_usd")
        if each["slice"]["name"] == found["recommended"] and cost is not None:
            # Results of earlier versions have no text for the price, only the month of the prices.
            price = estimate.get("price") or f"prices of {found['prices_of']}, not checked"
            return Fact("cost estimate", _usd(cost), f"of training on {found['recommended']}; {price}")
    return None
