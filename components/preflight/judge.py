"""Makes a verdict, with findings and an estimate, from the compiler's answer for a slice. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from slipway.components.preflight.advice import SliceVerdict
from slipway.components.preflight.chips import CHIPS, Price
from slipway.components.preflight.evidence import Case
from slipway.components.preflight.findings import findings
from slipway.components.preflight.question_and_answer import Answer, Question
from slipway.components.preflight.roofline import estimate


@dataclass(frozen=True, kw_only=True)
class Training:
    """Facts about the training other than its step.

    Attributes:
        train_files: number of files of transformed examples; None: not known.
        train_bytes: of them together; None: not known.
        train_rows: examples in them; None: not known.
        runtime: versions of the packages that the Python of the training has, by name; None: not known.
        interpreter: that Python, as `train.interpreter` would name it; "": the one of the pipeline.
        data_regions: of the buckets that the training reads, by their address; empty: not known.
        tpu_region: where the slice is to be rented; "": not known.
        prices: of a chip-hour by generation, where they are not those of `chips.CHIPS`.
    """

    backend: str
    epochs: int
    train_files: int | None = None
    train_bytes: int | None = None
    train_rows: int | None = None
    runtime: Mapping[str, str] | None = None
    interpreter: str = ""
    data_regions: Mapping[str, str] = field(default_factory=dict)
    tpu_region: str = ""
    prices: Mapping[str, Price] = field(default_factory=dict)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Training":
        """Reads what `asdict` wrote, or a part of it."""
        prices = {generation: Price(**price) for generation, price in values.get("prices", {}).items()}
        return cls(**{**values, "prices": prices})


def judge(
    question: Question,
    answer: Answer | None,
    training: Training,
    *,
    unanswered: tuple[str, str] = ("", ""),
) -> SliceVerdict:
    """The verdict of one slice.

    Args:
        answer: of the compiling process; None: it gave none.
        unanswered: why there is none where a compiler was asked, and the remedy; empty: none was asked.
    """
    generation = question.slice.generation
    chip = CHIPS[generation]
    chip = replace(chip, price=training.prices.get(generation, chip.price))
    is_tpu = answer is not None and answer.target == "tpu"
    estimated = None
    if answer is not None and is_tpu and answer.step.compiles:
        estimated = estimate(answer.step, question.slice, chip)
    case = Case(
        question=question,
        answer=answer,
        backend=training.backend,
        has_tensorflow=question.slice.has_tensorflow,
        train_files=training.train_files,
        train_bytes=training.train_bytes,
        interpreter="libtpu" if is_tpu else "",
        unanswered=unanswered,
        runtime=training.runtime,
        training_interpreter=training.interpreter,
        data_regions=training.data_regions,
        tpu_region=training.tpu_region,
        step_s=estimated.step_s if estimated else None,
    )
    rows = training.train_rows
    return SliceVerdict(
        question=question,
        answer=answer,
        findings=findings(case),
        estimate=estimated,
        examples=rows * training.epochs if rows else None,
        example_bytes=training.train_bytes / rows if rows and training.train_bytes else None,
    )
