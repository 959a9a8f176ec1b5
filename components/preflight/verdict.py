"""Makes the verdict on a slice, with findings and an estimate, from the compiler's answer. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from slipway.components.preflight.advice import SliceVerdict
from slipway.components.preflight.chip_specs import CHIPS, Price
from slipway.components.preflight.finding import Evidence
from slipway.components.preflight.question_and_answer import Answer, Question
from slipway.components.preflight.roofline import estimate
from slipway.components.preflight.step_rules import findings


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

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Training":
        """Read the plain values of `asdict`, or a part of them."""
        prices = {generation: Price(**price) for generation, price in values.get("prices", {}).items()}
        return cls(**{**values, "prices": prices})


def judge(
    question: Question,
    answer: Answer | None,
    training: Training,
    *,
    unanswered: tuple[str, str] = ("", ""),
) -> SliceVerdict:
    """Make the verdict on one slice.

    Args:
        answer: the answer of the compiling process; None if there is none.
        unanswered: why the compiling process gave no answer, and the remedy; both "" if it was not run.
    """
    generation = question.slice.generation
    chip = CHIPS[generation]
    chip = replace(chip, price=training.prices.get(generation, chip.price))
    is_tpu = answer is not None and answer.target == "tpu"
    estimated = None
    if answer is not None and is_tpu and answer.step.compiles:
        estimated = estimate(answer.step, question.slice, chip)
    evidence = Evidence(
        question=question,
        answer=answer,
        backend=training.backend,
        has_tensorflow=question.slice.has_tensorflow,
        made_otherwise=training.made_otherwise,
        changed_since=training.changed_since,
        train_files=training.train_files,
        train_bytes=training.train_bytes,
        train_rows=training.train_rows,
        input_cache=training.input_cache,
        interpreter="libtpu" if is_tpu else "",
        unanswered=unanswered,
        runtime=training.runtime,
        training_interpreter=training.interpreter,
        data_regions=training.data_regions,
        tpu_region=training.tpu_region,
        searched=training.searched,
        steps_per_execution=training.steps_per_execution,
        blow_up_trials=training.blow_up_trials,
        has_best_nowhere=training.has_best_nowhere,
        has_best_of_trials=training.has_best_of_trials,
        has_own_loop=training.has_own_loop,
        step_s=estimated.step_s if estimated else None,
    )
    rows = training.train_rows
    trained = rows and rows // question.batch_size * question.batch_size  # an epoch is of full batches
    is_streamed = training.input_cache not in ("memory", "file")  # else the files are read once
    return SliceVerdict(
        question=question,
        answer=answer,
        findings=findings(evidence),
        estimate=estimated,
        examples=trained * training.epochs if trained else None,
        example_bytes=training.train_bytes / rows if is_streamed and rows and training.train_bytes else None,
    )
