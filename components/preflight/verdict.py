"""Makes the verdict on a slice, with findings and an estimate, from the compiler's answer. Pure."""

from dataclasses import replace

from slipway.components.preflight.advice import SliceVerdict
from slipway.components.preflight.chip_specs import CHIPS
from slipway.components.preflight.finding import Evidence, Training
from slipway.components.preflight.question_and_answer import Answer, Question
from slipway.components.preflight.roofline import estimate
from slipway.components.preflight.step_rules import findings


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
        training=training,
        has_libtpu=is_tpu,
        unanswered=unanswered,
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
