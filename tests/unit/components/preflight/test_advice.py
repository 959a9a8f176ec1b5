from dataclasses import replace

from components.preflight.advice import Verdict, keys_to_set, recommended, slice_lines, table
from components.preflight.chips import CHIPS
from components.preflight.findings import findings
from components.preflight.request import Slice
from components.preflight.roofline import estimate


def verdict(case, name="v5e-8", devices=8, **changes):
    generation = name.partition("-")[0]
    made = case(
        slice=Slice(
            name=name, generation=generation, devices=devices, memory_bytes=CHIPS[generation].usable_bytes
        ),
        **changes,
    )
    return Verdict(
        question=made.question,
        answer=made.answer,
        findings=findings(made),
        estimate=estimate(made.answer.step, made.question.slice, CHIPS[generation]),
        examples=10_000,
    )


def test_the_cheapest_that_can_train_is_taken_and_its_keys_are_told(case):
    cheap, dear = verdict(case, "v5e-8"), verdict(case, "v2-8")

    assert recommended([dear, cheap]) is cheap
    assert keys_to_set(cheap) == {
        "train.device": "tpu",
        "train.tpu": "v5e-8",
        "train.backend": "jax",
        "train.batch_size": 1024,
    }


def test_one_with_an_error_is_never_taken(case):
    wrong = verdict(case, batch_size=1001)

    assert not wrong.can_train
    assert recommended([wrong]) is None


def test_a_backend_that_the_keys_change_speaks_against_no_slice(case):
    assert verdict(case, "v6e-8", backend="tensorflow", has_tensorflow=False).can_train


def test_a_slice_that_gave_no_answer_is_in_the_table_without_numbers(case):
    silent = replace(verdict(case), answer=None, estimate=None)

    assert table([silent])[1].split() == ["v5e-8", "?", *["-"] * 6]


def test_every_time_is_marked_as_an_estimate(case):
    timed = [line for line in slice_lines(verdict(case)) if "examples" in line or " a step" in line]

    assert timed
    assert all("estimate" in line for line in timed)
    assert verdict(case).to_json()["estimate"]["bound"] == "memory"
