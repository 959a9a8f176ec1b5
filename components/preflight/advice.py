"""The verdict on a slice as text and JSON, the table of slices, the recommended slice and its keys. Pure."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from slipway.components.preflight.amounts import duration, memory
from slipway.components.preflight.batch_search import SEARCH_LIMIT_ROWS
from slipway.components.preflight.chip_specs import YOURS
from slipway.components.preflight.expected import Expected, expect
from slipway.components.preflight.finding import OF_THE_BACKEND, Finding
from slipway.components.preflight.question_and_answer import Answer, Question
from slipway.components.preflight.roofline import Estimate
from slipway.components.preflight.slice_layout import layout_lines


@dataclass(frozen=True, kw_only=True)
class SliceVerdict:
    """The verdict on one slice.

    Attributes:
        answer: the answer of the compiling process; None if there is none.
        estimate: time and cost; None if the step does not compile, or was not compiled for a TPU.
        examples: the number of examples in all batches of the whole training; None if unknown.
        example_bytes: the mean size of an example in the files of transformed examples; None if unknown, or
            if the files are read once.
    """

    question: Question
    answer: Answer | None
    findings: tuple[Finding, ...]
    estimate: Estimate | None
    examples: int | None
    example_bytes: float | None = None

    @property
    def can_train(self) -> bool:
        """Whether the model can be trained with `keys_to_set`, which also set the backend."""
        return self.estimate is not None and not self._has_errors

    @property
    def trains(self) -> str:
        """Whether the model can be trained with them, as a word: "yes", "no", or "?" if it was not compiled
        for a TPU, and nothing else is wrong."""
        return "yes" if self.can_train else "no" if self._has_errors else "?"

    @property
    def _has_errors(self) -> bool:
        return any(each.severity == "error" and each.rule not in OF_THE_BACKEND for each in self.findings)

    @property
    def training_s(self) -> float | None:
        """The least time of the whole training, in seconds; None if unknown."""
        if self.estimate is None or self.examples is None:
            return None
        return self.estimate.training_s(self.examples)

    @property
    def cost_usd(self) -> float | None:
        """The least cost of the whole training, in US dollars; None if unknown."""
        if self.estimate is None or self.examples is None:
            return None
        return self.estimate.cost_usd(self.examples)

    @property
    def expected(self) -> Expected | None:
        """How much longer than its least time a step is expected to take; None if there is no estimate."""
        if self.estimate is None or self.answer is None:
            return None
        return expect(
            self.estimate,
            self.answer.layers,
            generation=self.question.slice.generation,
            rules=[each.rule for each in self.findings],
        )

    @property
    def input_bytes_per_s(self) -> float | None:
        """The rate at which the files, as stored, must be read if they are streamed; None if unknown."""
        if self.estimate is None or self.example_bytes is None:
            return None
        return self.estimate.examples_per_s * self.example_bytes

    def to_json(self) -> dict[str, object]:
        """Return plain values; times, rates and costs are estimates."""
        answer = self.answer
        estimated = None
        if self.estimate is not None:
            estimated = {
                **asdict(self.estimate),
                "price": str(self.estimate.price or ""),
                "price_usd": self.estimate.price_usd,
                "step_s": self.estimate.step_s,
                "bound": self.estimate.bound,
                "examples_per_s": self.estimate.examples_per_s,
                "input_bytes_per_s": self.input_bytes_per_s,
                "training_s": self.training_s,
                "cost_usd": self.cost_usd,
                "expected": self._expected_json(self.estimate),
            }
        return {
            "slice": asdict(self.question.slice),
            "batch_size": self.question.batch_size,
            "can_train": self.can_train,
            "target": answer.target if answer else None,
            "step": asdict(answer.step) if answer else None,
            "fits_batch": answer.fits_batch if answer else None,
            "fails_batch": answer.fails_batch if answer else None,
            "is_fast": answer.is_fast if answer else None,
            "parameters": answer.parameters if answer else None,
            "estimate": estimated,
            "findings": [asdict(each) for each in self.findings],
        }

    def _expected_json(self, estimate: Estimate) -> dict[str, object]:
        found = self.expected
        if found is None or found.spread is None:
            none = dict.fromkeys(("step_s", "low_s", "high_s", "training_s", "cost_usd"))
            return {**none, "why": found.why if found else ""}
        usual = found.spread.median
        return {
            "step_s": usual * estimate.step_s,
            "low_s": found.spread.low * estimate.step_s,
            "high_s": found.spread.high * estimate.step_s,
            "training_s": None if self.training_s is None else usual * self.training_s,
            "cost_usd": None if self.cost_usd is None else usual * self.cost_usd,
            "why": found.why,
        }


def recommended(verdicts: Sequence[SliceVerdict]) -> SliceVerdict | None:
    """Return the recommended slice: the cheapest that can train, or if costs are unknown, the smallest.

    The cost is that of the chip-hours at roofline speed. Among slices whose costs are equal to two digits,
    the smallest one is recommended; one that Vertex AI does not rent only if it rents none of them.
    """
    able = [each for each in verdicts if each.can_train]
    rented = [each for each in able if each.question.slice.machine]
    return min(rented or able, key=_dearness, default=None)


def _dearness(verdict: SliceVerdict) -> tuple[float, int]:
    estimate = verdict.estimate
    if estimate is None or estimate.price_usd is None:
        return float("inf"), verdict.question.slice.devices
    each = estimate.price_usd * estimate.step_s / estimate.batch_size
    # Two digits, so that the smaller of slices with almost equal costs wins.
    return float(f"{each:.1e}"), verdict.question.slice.devices


def keys_to_set(verdict: SliceVerdict) -> dict[str, str | int]:
    """Return the keys of the workload file that select the slice, with their values.

    There are none for a slice that Vertex AI does not rent: `train.tpu` names those that it does.
    """
    if not verdict.question.slice.machine:
        return {}
    return {
        "train.device": "tpu",
        "train.tpu": verdict.question.slice.name,
        "train.backend": "jax",
        "train.batch_size": verdict.question.batch_size,
    }


def renting(verdict: SliceVerdict, *, workload: str, region: str) -> dict[str, str]:
    """Return how to request the slice on Vertex AI: the text of a job file, and the command that submits it.

    The YAML file is written as JSON, which is YAML, too. A slice is one replica, however many hosts it has.
    The user replaces the words in capitals; `cloud_runner.py submit` fills in everything by itself.

    There is no way for a slice that Vertex AI does not rent.

    Source: `gcloud ai custom-jobs create`, reference of the Google Cloud CLI; CustomJobSpec, Vertex AI.
    """
    if not verdict.question.slice.machine:
        return {}
    pool = {
        "machineSpec": dict(verdict.question.slice.machine),
        "replicaCount": 1,
        "containerSpec": {"imageUri": "IMAGE"},
    }
    return {
        "job": json.dumps({"workerPoolSpecs": [pool]}),
        "command": f"gcloud ai custom-jobs create --region={region or 'REGION'} "
        f"--display-name={workload}-training --config=job.yaml",
    }


def slice_lines(verdict: SliceVerdict) -> list[str]:
    """Return the verdict on one slice as lines."""
    wanted, answer = verdict.question.slice, verdict.answer
    lines = [f"{wanted.name}  {wanted.devices} devices, batch {verdict.question.batch_size:,}"]
    if answer is not None and answer.step.compiles:
        lines.append(_compiled_line(verdict, answer))
    if verdict.estimate is not None:
        lines += _estimate_lines(verdict, verdict.estimate)
    if answer is not None and verdict.estimate is not None:
        lines += layout_lines(verdict.question, answer, verdict.estimate, verdict.input_bytes_per_s)
    marks = {"error": "✗", "warning": "!", "note": "-"}
    for finding in verdict.findings:
        lines.append(f"  {marks[finding.severity]} {finding.rule}: {finding.message}")
        if finding.remedy:
            lines.append(f"      {finding.remedy}")
    return lines


def _compiled_line(verdict: SliceVerdict, answer: Answer) -> str:
    step, wanted = answer.step, verdict.question.slice
    if answer.target != "tpu":
        return f"  ✓ XLA accepts the step ({answer.parameters:,} weights); checked for a CPU only"
    line = (
        f"  ✓ compiles, and needs {memory(step.peak_bytes)} of {memory(wanted.memory_bytes)} a device "
        f"({answer.parameters:,} weights, {answer.policy}{', a fast look' if answer.is_fast else ''})"
    )
    if answer.fits_batch and answer.fails_batch:
        line += f"; batch {answer.fits_batch:,} fits, {answer.fails_batch:,} does not"
    elif answer.fits_batch and answer.fits_batch > step.batch_size:
        line += f"; batch {answer.fits_batch:,} fits, too; no larger one was tried (--search, up to "
        line += f"{SEARCH_LIMIT_ROWS:,} examples a device)"
    elif answer.is_search_cut:
        line += "; the search for the largest batch was ended before it found one (--limit, --search)"
    return line


def _estimate_lines(verdict: SliceVerdict, estimate: Estimate) -> list[str]:
    step = verdict.answer.step if verdict.answer else None
    rate = verdict.input_bytes_per_s
    files = "" if rate is None else f": {rate / 2**20:,.0f} MiB/s of its files, where they are streamed"
    lines = [
        f"  ~ estimate: {step.flops:.3g} operations, {memory(step.moved_bytes)} moved, "
        f"{memory(step.collective_bytes)} sent a device and step"
        if step
        else "",
        f"  ~ estimate: at least {duration(estimate.step_s)} a step, {estimate.bound}-bound; at most "
        f"{estimate.examples_per_s:,.0f} examples/s, which the input must deliver{files}",
        _expected_line(verdict.expected, estimate),
    ]
    if estimate.price is not None:
        lines.append(f"  ~ estimate: {estimate.price_usd:.2f} USD an hour: {estimate.price}")
    if verdict.training_s is not None:
        lines.append(_training_line(verdict, verdict.training_s))
    return [line for line in lines if line]


def _training_line(verdict: SliceVerdict, least_s: float) -> str:
    def told(times: float) -> str:
        cost = "price not known" if verdict.cost_usd is None else f"{times * verdict.cost_usd:.2g} USD"
        return f"{duration(times * least_s)}, {cost}"

    usual = verdict.expected.spread if verdict.expected else None
    also = f"; expect about {told(usual.median)}" if usual else ""
    return (
        f"  ~ estimate: the training's {verdict.examples:,} examples take at least {told(1)}{also}; "
        "start and compilation not counted"
    )


def _expected_line(found: Expected | None, estimate: Estimate) -> str:
    if found is None:
        return ""
    if found.spread is None:
        return f"  ~ estimate: no expected time: {found.why}"
    usual, low, high = (
        duration(times * estimate.step_s)
        for times in (found.spread.median, found.spread.low, found.spread.high)
    )
    return f"  ~ estimate: expect about {usual} a step, {low} to {high}: {found.why}"


def table(verdicts: Sequence[SliceVerdict]) -> list[str]:
    """Return the table of slices: a heading, then one line per slice."""
    rows: list[tuple[str, ...]] = [
        ("slice", "trains", "memory", "bound by", "step", "examples/s", "USD/hour", "price of", "USD/million")
    ]
    for each in verdicts:
        estimate = each.estimate
        if estimate is None or each.answer is None:
            rows.append((each.question.slice.name, each.trains, *["-"] * 7))
            continue
        price, usd = estimate.price, estimate.price_usd
        whose = "" if price is None or price.source != YOURS else ", yours"
        rows.append(
            (
                each.question.slice.name,
                each.trains,
                f"{each.answer.step.peak_bytes / each.question.slice.memory_bytes:.1%}",
                estimate.bound,
                duration(estimate.step_s),
                f"{estimate.examples_per_s:,.0f}",
                "?" if usd is None else f"{usd:.2f}",
                "?" if price is None else f"{price.month}{whose}",
                "?" if usd is None else f"{usd / 3600 * 1e6 / estimate.examples_per_s:.2g}",
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
