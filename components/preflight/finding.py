"""A finding of the preflight, and the facts that the rules examine. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from slipway.components.preflight.chip_specs import Price
from slipway.components.preflight.question_and_answer import Answer, Question

Severity = Literal["error", "warning", "note"]
STOPPING = ("does_not_compile", "does_not_fit")
"""Rules whose findings mean that no training is possible."""
OF_THE_BACKEND = ("backend", "buckets", "train_step")
"""Rules whose errors are of TensorFlow or torch alone: none of them is left with `train.backend: jax`."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One fault or remark that a rule found.

    Attributes:
        rule: the rule's name, explained in docs/tpu.md.
        severity: "error": the training is impossible as it is; "warning": it wastes money; "note": something
            was not checked.
    """

    rule: str
    severity: Severity
    message: str
    remedy: str


@dataclass(frozen=True, kw_only=True)
class Training:
    """Facts about the training other than its step.

    Attributes:
        made_otherwise, changed_since: as in `transformed.Transformed`.
        train_files: the number of files of transformed examples; None if unknown.
        train_bytes: their total size; None if unknown.
        input_cache: `train.input.cache`, which says whether each host reads all of them.
        train_rows: the number of examples in them; None if unknown.
        runtime: the package versions of the Python that trains, by package; None if unknown.
        interpreter: that Python, as `train.interpreter` names it; "" for the pipeline's own.
        data_regions: the regions of the buckets that the training reads, by address; empty if unknown.
        tpu_region: the region where the slice is to be rented; "" if unknown.
        searched: the value that is judged of each hyperparameter that is searched, by name.
        blow_up_trials: `train.blow_up.trials`.
        has_best_nowhere: whether the best epoch is wanted, and neither `train.checkpoint.folder` nor
            `cloud.root` keeps it.
        has_best_of_trials: whether the best epoch is wanted of the trials of a search.
        has_own_loop: whether the model's module has a `fit(model, data, context)` of its own.
        steps_per_execution: `train.steps_per_execution`; 1 if it is left open.
        prices: prices of a chip-hour by generation, which replace those of `chip_specs.CHIPS`.
    """

    backend: str
    epochs: int
    made_otherwise: str = ""
    changed_since: str = ""
    train_files: int | None = None
    train_bytes: int | None = None
    train_rows: int | None = None
    input_cache: str = "auto"
    runtime: Mapping[str, str] | None = None
    interpreter: str = ""
    data_regions: Mapping[str, str] = field(default_factory=dict)
    tpu_region: str = ""
    searched: Mapping[str, object] = field(default_factory=dict)
    steps_per_execution: int = 1
    blow_up_trials: int = 0
    has_best_nowhere: bool = False
    has_best_of_trials: bool = False
    has_own_loop: bool = False
    prices: Mapping[str, Price] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The facts that the rules examine.

    Attributes:
        answer: the answer of the compiling process; None if there is none.
        has_libtpu: whether an interpreter here has libtpu and compiled the step with it.
        unanswered: why the compiling process gave no answer, and the remedy; "" if it did, or was not run.
        step_s: the estimated least time of a step; None if unknown.
    """

    question: Question
    answer: Answer | None
    training: Training
    has_libtpu: bool = False
    unanswered: tuple[str, str] = ("", "")
    step_s: float | None = None

    @property
    def backend(self) -> str:
        """`train.backend`."""
        return self.training.backend
