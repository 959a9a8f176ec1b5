"""A finding, and all that the rules look at to come to one. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from slipway.components.preflight.question_and_answer import Answer, Question

Severity = Literal["error", "warning", "note"]
STOPPING = ("does_not_compile", "does_not_fit")
"""Rules whose findings rule a training out."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that was found.

    Attributes:
        rule: its name, as docs/tpu.md explains it.
        severity: "error": it cannot be trained so; "warning": money lost; "note": not checked.
    """

    rule: str
    severity: Severity
    message: str
    remedy: str


@dataclass(frozen=True, kw_only=True)
class Case:
    """All that the rules look at.

    Attributes:
        answer: of the compiling process; None before it was asked.
        train_files: number of files of transformed examples; None: not known.
        train_bytes: of them together; None: not known.
        interpreter: of the compiling process, in words; "" where none has libtpu.
        unanswered: why the compiling process gave no answer, and the remedy; empty: it did, or there is none.
        runtime: versions of what the Python of the training has, by package; None: not known.
        training_interpreter: that Python, as `train.interpreter` has it; "": the one of the pipeline.
        data_regions: of the buckets that the training reads, by their address; empty: not known.
        tpu_region: where the slice is to be rented; "": not known.
        step_s: the least time of a step, as estimated; None: not known.
    """

    question: Question
    answer: Answer | None
    backend: str
    has_tensorflow: bool
    train_files: int | None = None
    train_bytes: int | None = None
    interpreter: str = ""
    unanswered: tuple[str, str] = ("", "")
    runtime: Mapping[str, str] | None = None
    training_interpreter: str = ""
    data_regions: Mapping[str, str] = field(default_factory=dict)
    tpu_region: str = ""
    step_s: float | None = None
