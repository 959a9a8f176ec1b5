from dataclasses import replace

import pytest

from slipway.components.preflight.advice import (
    SliceVerdict,
    keys_to_set,
    recommended,
    renting,
    slice_lines,
    table,
)
from slipway.components.preflight.chip_specs import CHIPS, Price
from slipway.components.preflight.finding import Finding
from slipway.components.preflight.question_and_answer import Compiled, Layer, Slice
from slipway.components.preflight.roofline import estimate
from slipway.components.preflight.step_rules import findings


def verdict(case, name="v5e-8", devices=8, **changes):
    generation = name.partition("-")[0]
    made = case(
        slice=Slice(
            name=name,
            generation=generation,
            devices=devices,
            memory_bytes=CHIPS[generation].usable_bytes,
            machine={"machineType": "a machine"},
        ),
        **changes,
    )
    return SliceVerdict(
        question=made.question,
        answer=made.answer,
        findings=findings(made),
        estimate=estimate(made.answer.step, made.question.slice, CHIPS[generation]),
        examples=10_000,
    )


def test_the_cheapest_that_can_train_is_taken_and_its_keys_are_reported(case):
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

    assert table([silent])[1].split() == ["v5e-8", "?", *["-"] * 7]


def test_a_step_that_only_a_cpu_has_compiled_is_not_said_to_train_or_not(case):
    unknown = replace(verdict(case), estimate=None)
    wrong = Finding(rule="does_not_compile", severity="error", message="", remedy="")

    assert table([unknown])[1].split()[1] == "?"
    assert table([replace(unknown, findings=(wrong,))])[1].split()[1] == "no"
    assert table([replace(unknown, answer=None, findings=(wrong,))])[1].split()[1] == "no"


@pytest.mark.parametrize("rule", ["backend", "buckets", "train_step"])
def test_what_only_tensorflow_lacks_does_not_speak_against_a_slice_with_jax(case, rule):
    with_tensorflow = Finding(rule=rule, severity="error", message="", remedy="train.backend=jax")
    found = replace(verdict(case), findings=(with_tensorflow,))

    assert found.can_train
    assert keys_to_set(found)["train.backend"] == "jax"
    assert table([found])[1].split()[1] == "yes"


def test_every_price_says_of_when_it_is_and_who_says_so(case):
    asked, own = verdict(case), verdict(case)
    own = replace(own, estimate=replace(own.estimate, price=Price(usd=0.95, month="2026-11")))

    (line,) = [each for each in slice_lines(asked) if "USD" in each and "examples" not in each]
    assert line.endswith(
        "9.60 USD an hour: 1.2 USD a chip-hour of 2025-02, as How to Scale Your Model quotes it, not checked"
    )
    assert asked.to_json()["estimate"]["price"] in line
    assert any(
        "7.60 USD an hour: 0.95 USD a chip-hour of 2026-11, yours" in each for each in slice_lines(own)
    )
    assert [row.split()[-3:-1] for row in table([asked])[1:]] == [["9.60", "2025-02"]]
    assert "7.60      2026-11, yours" in table([own])[1]


def test_where_no_price_is_known_none_is_reported(case):
    unknown = verdict(case, "v7-8")

    assert not [line for line in slice_lines(unknown) if "chip-hour" in line]
    assert unknown.to_json()["estimate"]["price"] == ""
    assert table([unknown])[1].split()[-3:] == ["?", "?", "?"]


def test_every_time_is_marked_as_an_estimate(case):
    timed = [line for line in slice_lines(verdict(case)) if "examples" in line or " a step" in line]

    assert timed
    assert all("estimate" in line for line in timed)
    assert verdict(case).to_json()["estimate"]["bound"] == "memory"


CONVOLUTIONS = (Layer(name="one", kind="Conv2D", matrices=((3, 3, 64, 64),), positions=56 * 56),)
# Of Keras' ResNet50 on v3-8, nearly, as docs/tpu.md has it.
RESNET = Compiled(batch_size=1024, flops=2.88e12, moved_bytes=41.924e9, collective_bytes=51682772)


def test_a_step_like_published_ones_has_a_time_to_expect_beside_the_least(case):
    found = verdict(case, "v3-8", layers=CONVOLUTIONS, step=RESNET)

    least, expected = (each.removeprefix("  ~ estimate: ") for each in slice_lines(found)[3:5])
    assert least.startswith("at least 93.2 ms a step, memory-bound; at most 10,991 examples/s")
    assert expected == (
        "expect about 131 ms a step, 126 ms to 194 ms: 6 memory-bound published steps of models of "
        "convolutions on v3 (of one model) took 1.3 to 2.1 times their least time; measured by others, "
        "not by us"
    )
    (training,) = [each for each in slice_lines(found) if "10,000 examples" in each]
    assert "take at least 910 ms, 0.002 USD; expect about 1.28 s, 0.0028 USD; start" in training
    told = found.to_json()["estimate"]["expected"]
    assert told["low_s"] < told["step_s"] < told["high_s"] < 2.2 * found.estimate.step_s
    assert told["training_s"] / found.training_s == told["cost_usd"] / found.cost_usd > 1.3
    assert told["why"] in expected


def test_a_step_like_none_that_was_published_has_the_least_time_only(case):
    plain = verdict(case)

    assert [line for line in slice_lines(plain) if "expect" in line] == [
        "  ~ estimate: no expected time: all published steps are of attention or convolution models"
    ]
    told = plain.to_json()["estimate"]["expected"]
    assert told.pop("why") in slice_lines(plain)[4]
    assert set(told.values()) == {None}


def test_docs_show_what_the_screen_says_of_both(case, project):
    page = (project / "docs/tpu.md").read_text(encoding="utf-8")

    for each in (verdict(case), verdict(case, "v3-8", layers=CONVOLUTIONS, step=RESNET)):
        assert f"    {slice_lines(each)[4]}\n" in page


def test_a_slice_that_vertex_ai_does_not_rent_is_taken_only_without_one_that_it_does(case):
    elsewhere = verdict(case, "v4-8")
    elsewhere = replace(
        elsewhere,
        question=replace(elsewhere.question, slice=replace(elsewhere.question.slice, machine={})),
    )

    assert recommended([elsewhere]) is elsewhere
    assert recommended([elsewhere, verdict(case, "v2-8")]).question.slice.name == "v2-8"
    assert keys_to_set(elsewhere) == {}
    assert renting(elsewhere, workload="taxi", region="") == {}


def test_a_search_that_was_ended_is_told(case):
    first = slice_lines(verdict(case, is_search_cut=True))[1]

    assert first.endswith(
        "; the search for the largest batch was ended before it found one (--limit, --search)"
    )
    assert "search" not in slice_lines(verdict(case))[1]
