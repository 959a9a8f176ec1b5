"""The compiling process, on models that are wrong in one way each and on models that only look wrong."""

import json
import math
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from slipway.components.errors import ComponentError
from slipway.components.preflight.chip_specs import CHIPS
from slipway.components.preflight.compiler import WITH_LIBTPU, adapt_to_compiler, run_compiler
from slipway.components.preflight.expected import kind_of
from slipway.components.preflight.finding import Evidence, Training
from slipway.components.preflight.other_slices import OTHER_SLICES
from slipway.components.preflight.published_steps import PUBLISHED
from slipway.components.preflight.question_and_answer import Answer, Loop, Question, Slice
from slipway.components.preflight.step_rules import findings
from slipway.components.typed_json import typed

pytestmark = [pytest.mark.slow, pytest.mark.external]

FEATURES = (
    {"name": "x", "dtype": "float32", "shape": [256], "categories": None},
    {"name": "y", "dtype": "float32", "shape": [1], "categories": None},
)
ONE_CHIP = Slice(
    name="v5e-1", generation="v5e", devices=1, topology="1x1", memory_bytes=CHIPS["v5e"].usable_bytes
)
EIGHT_CHIPS = replace(ONE_CHIP, name="v5e-8", devices=8, topology="2x4")
FOUR_HOSTS = replace(ONE_CHIP, name="v5e-16", devices=16, hosts=4, topology="4x4")
V3_8 = Slice(name="v3-8", generation="v3", devices=8, topology="2x2", memory_bytes=CHIPS["v3"].usable_bytes)
V2_8 = Slice(name="v2-8", generation="v2", devices=8, topology="2x2", memory_bytes=CHIPS["v2"].usable_bytes)

at_a_desk = pytest.mark.skipif("CI" in os.environ, reason="takes minutes of CPU")


def question(model: str, where: Slice = ONE_CHIP, batch_size: int = 512, **settings) -> Question:
    return Question(
        slice=where,
        model=f"preflight_models.{model}",
        hyperparameters={},
        features=FEATURES,
        label="y",
        batch_size=batch_size,
        **settings,
    )


LAYOUT = {".*attention.*kernel": (None, "model")}
# What is asked, the rule that finds its fault, and words of what it says.
WRONG = (
    (question("unknown_shape"), "does_not_compile", "'x'"),
    (question("text_input"), "does_not_compile", "strings (preflight_models.py, line"),
    (question("numpy_inside"), "does_not_compile", "'numpy_mean'"),
    (question("shape_by_value"), "does_not_compile", "'chosen'"),
    (question("tensorflow_inside"), "does_not_compile", "'py_function'"),
    (question("branching"), "does_not_compile", "'if_positive'"),
    (
        question("callback"),
        "callback",
        "pure_callback in the layer 'numpy_double', preflight_models.py, line",
    ),
    (question("reporting"), "callback", "io_callback in the layer 'report', preflight_models.py, line"),
    (question("printing"), "callback", "debug_print in the layer 'print', preflight_models.py, line"),
    (question("wide_numbers"), "float64", "double (preflight_models.py, line"),
    (question("badly_padded"), "padding", "layer odd (preflight_models.py, line"),
    (question("fine", precision="float32"), "float32", "half the memory"),
    (question("fine", precision="mixed_float16"), "float16", "no unit"),
    (question("fine", EIGHT_CHIPS, 1001), "indivisible", "1001"),
    (question("fine", EIGHT_CHIPS, 8 * 130), "batch_padding", "130 examples a core"),
    (question("fine", EIGHT_CHIPS, model_parallel=2, layout=LAYOUT), "layout", "attention"),
    (
        question("fine", EIGHT_CHIPS, model_parallel=2, layout={"answer/kernel": (None, "model")}),
        "layout",
        "answer/kernel has 1 in dimension 1, which is not a multiple of 2",
    ),
)
FINE = tuple(map(question, ("fine", "top_k", "masked")))
# With all its effort libtpu takes 40 s of CPU more for these; test_known_programs.py has it do so for two.
FINE_AND_LARGE = tuple(question(name, is_fast=True) for name in ("embedding", "convolution", "attention"))


def found(asked_for, answer) -> list[tuple[str, str]]:
    training = Training(backend="jax", epochs=1)
    case = Evidence(question=asked_for, answer=answer, training=training, has_libtpu=True)
    return [(each.rule, each.message) for each in findings(case)]


def check_all(questions, answers) -> None:
    wrong = {id(each): (rule, words) for each, rule, words in WRONG}
    assert len(answers) == len(questions)
    for each, answer in zip(questions, answers, strict=True):
        if id(each) not in wrong:
            assert [rule for rule, _ in found(each, answer)] == ["fast"] * answer.is_fast, each.model
            continue
        rule, words = wrong[id(each)]
        ((told, message),) = found(each, answer)
        assert told == rule, each.model
        assert words in message


def test_without_libtpu_each_rule_finds_a_wrong_model_and_fine_ones_pass(asked, jax_python):
    # The first of each rule: where others differ is seen before anything is compiled, as in the next test.
    first = {rule: each for each, rule, _ in reversed(WRONG)}
    questions = [*first.values(), *FINE]

    answers = asked(jax_python, [adapt_to_compiler(each, "") for each in questions])

    check_all(questions, answers)
    assert {answer.target for answer in answers} == {"cpu"}
    assert {answer.step.peak_bytes for answer in answers} == {0}  # nothing is said of a TPU's memory


def test_a_label_is_a_float_as_the_training_gives_it(asked, jax_python):
    codes = (FEATURES[0], {**FEATURES[1], "dtype": "int64"})
    indexed = replace(question("label_as_index"), features=codes)

    (answer,) = asked(jax_python, [adapt_to_compiler(indexed, "")])

    ((rule, message),) = found(indexed, answer)
    assert rule == "does_not_compile"
    assert "must be of integer type, got float32" in message


def test_for_a_tpu_each_wrong_model_gets_its_finding_and_fine_ones_none(asked, tpu_python):
    questions = [*(each for each, _, _ in WRONG), *FINE, *FINE_AND_LARGE]

    answers = asked(tpu_python, [adapt_to_compiler(each, WITH_LIBTPU) for each in questions])

    check_all(questions, answers)
    assert all(answer.step.peak_bytes > 0 for answer in answers if answer.step.compiles)


def test_weights_that_do_not_fit_are_reported_with_what_they_need(asked, tpu_python):
    huge = question("huge_embedding", V2_8)

    (answer,) = asked(tpu_python, [huge])

    assert [rule for rule, _ in found(huge, answer)] == ["does_not_fit"]
    assert answer.step.peak_bytes >= 8 * 2**30 > answer.step.available_bytes > 7 * 2**30


@pytest.fixture
def run(project, jax_python):
    """Asks a compiling process of its own, as the command does."""
    python = str(Path(jax_python).relative_to(project))
    roots = [project / "tests" / "data" / "preflight"]
    return lambda model: run_compiler(
        adapt_to_compiler(question(model), python), python, import_roots=roots, limit_s=500.0
    )


def test_what_a_model_prints_is_not_taken_for_the_answer(run):
    assert run("talking").step.compiles


def test_a_model_that_ends_its_process_is_refused_in_its_own_words(run):
    with pytest.raises(ComponentError, match=r"preflight_models.py, line \d+: SystemExit: there is no GPU"):
        run("leaving")


WITHIN = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
sys.argv = sys.argv[1:]
runpy.run_module("slipway.components.preflight.compile_and_measure", run_name="__main__")
"""


def test_a_table_beyond_this_machines_memory_is_judged_from_its_shape(project, jax_python, tmp_path):
    codes = ({**FEATURES[0], "dtype": "int64"}, FEATURES[1])
    sizes = {"rows": 50_000_000, "width": 128}
    huge = replace(question("embedding_of_any_size"), features=codes, hyperparameters=sizes)
    file = tmp_path / "question.json"
    file.write_text(json.dumps(adapt_to_compiler(huge, "").to_json()), encoding="utf-8")
    roots = [str(project), str(project / "tests" / "data" / "preflight")]

    # The table and Adam's two numbers for each of its values are 72 GiB; the process may have 12.
    done = subprocess.run(
        [jax_python, "-W", "ignore", "-c", WITHIN, str(12 * 2**30), str(file)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(roots), "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        check=False,
    )

    answer = typed(Answer, json.loads(done.stdout.strip().splitlines()[-1]))
    assert answer.state_bytes > 70 * 2**30
    rules = [rule for rule, _ in found(huge, answer)]
    assert rules == ["does_not_fit", "whole_table"]


def resnet(where: Slice, side: int, classes: int, batch_size: int, model: str = "resnet50") -> Question:
    """Keras' own ResNet50, or a shorter one, on images of `side` x `side` pixels."""
    features = (
        {"name": "x", "dtype": "float32", "shape": [side, side, 3], "categories": None},
        {"name": "y", "dtype": "int64", "shape": [1], "categories": None},
    )
    asked = question(model, where, batch_size)
    return replace(asked, features=features, hyperparameters={"classes": classes})


@pytest.mark.parametrize(
    ("python", "model", "without_top"),
    [
        pytest.param("jax_python", "resnet50", 23_587_712, marks=at_a_desk, id="without libtpu"),
        pytest.param("tpu_python", "resnet50", 23_587_712, marks=at_a_desk, id="for a TPU"),
        pytest.param("tpu_python", "short_resnet", 8_966_912, id="each kind of its blocks, for a TPU"),
    ],
)
def test_resnet50_of_small_images_goes_through(asked, request, python, model, without_top):
    small = resnet(ONE_CHIP, side=32, classes=10, batch_size=64, model=model)
    compiler = WITH_LIBTPU if python == "tpu_python" else ""
    # With all its effort, libtpu takes a minute of CPU more.
    looked_at = adapt_to_compiler(replace(small, is_fast=True), compiler)

    (answer,) = asked(request.getfixturevalue(python), [looked_at])

    assert [rule for rule, _ in found(small, answer)] == (["fast"] if compiler else [])
    assert answer.target == ("tpu" if compiler else "cpu")
    # As Keras' documentation has them without its top, and the 10 classes over 2048 values.
    assert answer.parameters == without_top + 10 * 2049
    # Forward, and backward to the values and to the weights; less what filters do beyond the edges, which is
    # not counted, and is much of the last blocks, whose images have one pixel or four.
    forward = sum(each.positions * math.prod(shape) for each in answer.layers for shape in each.matrices)
    assert 0.75 <= answer.step.flops / (3 * 2 * forward * small.batch_size) <= 1


@at_a_desk
def test_resnet50_compiles_to_what_the_published_comparison_has(asked, tpu_python):
    row = next(each for each in PUBLISHED if (each.network.name, each.slice) == ("ResNet-50", "v3-8"))
    whole = resnet(V3_8, side=224, classes=1000, batch_size=row.batch_size)

    (answer,) = asked(tpu_python, [whole])

    assert found(whole, answer) == []
    assert kind_of(answer.layers) == "convolution"
    for key in ("flops", "moved_bytes", "collective_bytes"):
        assert getattr(answer.step, key) == pytest.approx(getattr(row.counted, key), rel=0.02), key


def check_both_sides(asked, tpu_python, searched_for: Question) -> None:
    """That the compiler, asked anew, takes the one batch and refuses the other, the next larger."""
    (searched,) = asked(tpu_python, [searched_for])

    assert 0 < searched.fits_batch == searched.fails_batch - 8
    sides = [
        replace(searched_for, batch_size=size, search_s=0.0)
        for size in (searched.fits_batch, searched.fails_batch)
    ]
    fits, fails = asked(tpu_python, sides)
    assert fits.step.compiles
    assert fails.step.is_out_of_memory
    assert fails.step.peak_bytes >= fails.step.available_bytes > 15 * 2**30


def test_the_largest_batch_is_the_compilers_own_verdict_on_both_sides(asked, tpu_python):
    check_both_sides(asked, tpu_python, question("wide_activations", batch_size=8192, search_s=500.0))


def test_of_a_model_that_takes_one_batch_only_no_other_is_found(asked, tpu_python):
    fixed = question("fixed_batch", search_s=300.0, is_fast=True)

    (answer,) = asked(tpu_python, [fixed])

    assert answer.step.compiles
    assert (answer.fits_batch, answer.fails_batch) == (fixed.batch_size, None)


@at_a_desk
def test_the_largest_batch_is_found_below_one_that_does_not_fit(asked, tpu_python):
    check_both_sides(asked, tpu_python, question("too_big", batch_size=65536, search_s=1200.0))


def test_a_slice_of_eight_sends_its_gradients_and_each_computes_an_eighth(asked, tpu_python):
    one, eight = asked(tpu_python, [question("fine", ONE_CHIP), question("fine", EIGHT_CHIPS)])

    assert one.step.collective_bytes == 0
    # Under mixed_bfloat16 gradients are sent as they are computed, in two bytes.
    assert eight.step.collective_bytes == pytest.approx(2 * eight.parameters, rel=0.1)
    assert eight.step.flops == pytest.approx(one.step.flops / 8, rel=0.1)


def test_a_fast_look_is_at_another_program_that_needs_more_memory(asked, tpu_python):
    full, fast = asked(tpu_python, [question("fine"), question("fine", is_fast=True)])

    assert (full.is_fast, fast.is_fast) == (False, True)
    assert fast.step.compiles
    assert fast.step.peak_bytes > full.step.peak_bytes
    assert fast.step.moved_bytes != full.step.moved_bytes


def test_a_slice_of_several_hosts_and_a_model_over_two_devices_compile(asked, tpu_python):
    whole = question("fine", FOUR_HOSTS)
    halves = question("fine", FOUR_HOSTS, model_parallel=2, layout={"wide/kernel": (None, "model")})

    deep = [question("fine", OTHER_SLICES[name]) for name in ("v4-32", "v5p-128")]

    apart, together, *others = asked(tpu_python, [whole, halves, *deep])

    assert found(whole, apart) == found(halves, together) == []
    (gradients,) = apart.step.collectives
    assert (gradients.kind, gradients.shape, gradients.links, gradients.hops) == ("all-reduce", "4x4", 2, 6)
    assert [(each.name, each.shape, each.hosts) for each in apart.mesh] == [
        ("batch", "4x4", 4),
        ("model", "1x1", 1),
    ]
    assert [(each.shape, each.hosts) for each in together.mesh] == [("2x4", 4), ("2x1", 1)]
    assert {(each.shape, each.devices) for each in together.step.collectives} <= {
        ("2x4", 8),
        ("2x1", 2),
        ("4x4", 16),
    }
    assert [each.mesh[0].hosts for each in others] == [4, 16]
    assert [each.step.collectives[0].links for each in others] == [3, 6]
    # Each device updates all weights, whatever its part of the batch is.
    assert DENSE_FLOPS / 16 <= apart.step.flops <= 1.25 * DENSE_FLOPS / 16
    assert together.target == "tpu"


def test_operations_of_a_recurrent_layer_are_those_of_all_its_turns(asked, tpu_python):
    looped, unrolled = asked(
        tpu_python,
        [replace(question("recurrent"), hyperparameters={"unroll": unroll}) for unroll in (False, True)],
    )

    assert looped.step.loops == (Loop(layer="turning", turns=32),)
    assert unrolled.step.loops == ()
    # What is done element by element is counted once.
    assert 0.9 * unrolled.step.flops <= looped.step.flops <= unrolled.step.flops
    ((rule, message),) = found(question("recurrent"), looped)
    assert rule == "loop"
    assert "layer turning (preflight_models.py, line" in message


# x @ w1 and x @ w1 @ w2 forward; the gradients of both weights and of the hidden values.
DENSE_FLOPS = 2 * 512 * (2 * 256 * 512 + 3 * 512 * 1)


def test_operations_of_a_dense_model_are_those_of_the_formula(asked, tpu_python):
    (fine,) = asked(tpu_python, [question("fine", ONE_CHIP)])

    # The compiler counts what is done element by element, too: the activation, the loss, Adam.
    assert DENSE_FLOPS <= fine.step.flops <= 1.05 * DENSE_FLOPS
