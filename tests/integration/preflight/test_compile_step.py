"""The compiling process, on models that are wrong in one way each and on models that only look wrong."""

from dataclasses import replace

import pytest

from components.preflight.chips import CHIPS
from components.preflight.findings import Case, findings
from components.preflight.request import Question, Slice

FEATURES = (
    {"name": "x", "dtype": "float32", "shape": [256], "categories": None},
    {"name": "y", "dtype": "float32", "shape": [1], "categories": None},
)
ONE_CHIP = Slice(
    name="v5e-1", generation="v5e", devices=1, topology="1x1", memory_bytes=CHIPS["v5e"].usable_bytes
)
EIGHT_CHIPS = replace(ONE_CHIP, name="v5e-8", devices=8, topology="2x4")
CPU = Slice(name="cpu", generation="", devices=1)
WRONG = {
    "unknown_shape": ("does_not_compile", "'x'"),
    "text_input": ("does_not_compile", "strings"),
    "numpy_inside": ("does_not_compile", "'numpy_mean'"),
    "shape_by_value": ("does_not_compile", "'chosen'"),
    "callback": ("callback", "pure_callback in jvp(numpy_double)"),
    "printing": ("callback", "debug_print in jvp(print)"),
    "wide_numbers": ("float64", "double"),
    "badly_padded": ("padding", "130 units"),
}
FINE_AND_QUICK = ("fine", "top_k", "masked")
FINE = (*FINE_AND_QUICK, "embedding", "convolution", "attention")


def question(model: str, where: Slice, batch_size: int = 512) -> Question:
    return Question(
        slice=where,
        model=f"preflight_models.{model}",
        hyperparameters={},
        features=FEATURES,
        label="y",
        batch_size=batch_size,
    )


def found(asked_for, answer) -> list[tuple[str, str]]:
    case = Case(
        question=replace(asked_for, slice=ONE_CHIP),
        answer=answer,
        backend="jax",
        has_tensorflow=True,
        interpreter="it",
    )
    return [(each.rule, each.message) for each in findings(case)]


def check_all(questions, answers) -> None:
    assert len(answers) == len(questions)
    for each, answer in zip(questions, answers, strict=True):
        name = each.model.rpartition(".")[2]
        if name not in WRONG:
            assert found(each, answer) == [], name
            continue
        rule, words = WRONG[name]
        ((told, message),) = found(each, answer)
        assert told == rule, name
        assert words in message


@pytest.mark.slow
def test_without_libtpu_each_wrong_model_gets_its_finding_and_fine_ones_none(asked, jax_python):
    questions = [question(name, CPU) for name in (*WRONG, *FINE_AND_QUICK)]

    answers = asked(jax_python, questions)

    check_all(questions, answers)
    assert {answer.target for answer in answers} == {"cpu"}
    assert {answer.step.peak_bytes for answer in answers} == {0}  # nothing is said of a TPU's memory


@pytest.mark.slow
def test_for_a_tpu_each_wrong_model_gets_its_finding_and_fine_ones_none(asked, tpu_python):
    questions = [question(name, ONE_CHIP) for name in (*WRONG, *FINE)]

    answers = asked(tpu_python, questions)

    check_all(questions, answers)
    assert all(answer.step.peak_bytes > 0 for answer in answers if answer.step.fits)


@pytest.mark.slow
def test_the_largest_batch_is_the_compilers_own_verdict_on_both_sides(asked, tpu_python):
    too_big = replace(question("too_big", ONE_CHIP, batch_size=65536), search_s=300.0)
    (searched,) = asked(tpu_python, [too_big])

    assert searched.step.is_out_of_memory
    assert searched.step.peak_bytes > searched.step.available_bytes > 15 * 2**30
    assert 0 < searched.fits_batch < searched.fails_batch <= 65536
    assert searched.fails_batch <= searched.fits_batch * 1.1
    sides = [
        replace(too_big, batch_size=size, search_s=0.0)
        for size in (searched.fits_batch, searched.fails_batch)
    ]
    fits, fails = asked(tpu_python, sides)
    assert fits.step.fits
    assert fails.step.is_out_of_memory


@pytest.mark.slow
def test_a_slice_of_eight_sends_its_gradients_and_each_computes_an_eighth(asked, tpu_python):
    one, eight = asked(tpu_python, [question("fine", ONE_CHIP), question("fine", EIGHT_CHIPS)])

    assert one.step.collective_bytes == 0
    # Under mixed_bfloat16 gradients are sent as they are computed, in two bytes.
    assert eight.step.collective_bytes == pytest.approx(2 * eight.parameters, rel=0.1)
    assert eight.step.flops == pytest.approx(one.step.flops / 8, rel=0.1)


# x @ w1 and x @ w1 @ w2 forward; the gradients of both weights and of the hidden values.
DENSE_FLOPS = 2 * 512 * (2 * 256 * 512 + 3 * 512 * 1)


@pytest.mark.slow
def test_operations_of_a_dense_model_are_those_of_the_formula(asked, tpu_python):
    (fine,) = asked(tpu_python, [question("fine", ONE_CHIP)])

    # The compiler counts what is done element by element, too: the activation, the loss, Adam.
    assert DENSE_FLOPS <= fine.step.flops <= 1.05 * DENSE_FLOPS
