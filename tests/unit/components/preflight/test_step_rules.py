import json
from dataclasses import asdict, replace

import pytest

from slipway.components.preflight.question_and_answer import Compiled, Layer, Loop, Slice, Trait
from slipway.components.preflight.step_rules import findings
from slipway.components.typed_json import typed

FOUR_HOSTS = Slice(name="v5e-16", generation="v5e", devices=16, hosts=4, topology="4x4")


def test_nothing_is_found_where_nothing_is_wrong(case):
    assert findings(case()) == ()
    assert findings(case(train_rows=1024)) == ()
    assert findings(case(train_rows=4096, steps_per_execution=4)) == ()
    assert findings(case(blow_up_trials=2, has_own_loop=True, has_best_nowhere=True)) == ()
    assert findings(case(has_best_of_trials=True)) == ()


@pytest.mark.parametrize(
    ("changes", "rule", "severity", "words"),
    [
        ({"batch_size": 1001}, "indivisible", "error", "1000 or 1008"),
        ({"batch_size": 8 * 130}, "batch_padding", "warning", "train.batch_size 2048"),
        ({"backend": "torch"}, "backend", "error", "train.backend=jax"),
        (
            {"backend": "tensorflow", "model_parallel": 2, "layout": {"hidden/kernel": (None, "model")}},
            "backend",
            "error",
            "train.backend to jax",
        ),
        ({"backend": "tensorflow", "has_tensorflow": False}, "backend", "error", "train.backend=jax"),
        ({"backend": "tensorflow"}, "backend", "note", "train.backend=jax"),
        ({"backend": "tensorflow", "slice": FOUR_HOSTS}, "backend", "error", "train.backend=jax"),
        ({"backend": "tensorflow", "accumulate_steps": 4}, "backend", "error", "train.backend to jax"),
        ({"backend": "tensorflow", "has_own_loop": True}, "backend", "error", "train.backend to jax"),
        ({"has_own_loop": True, "steps_per_execution": 8}, "own_loop", "error", "a train_step of the model"),
        ({"backend": "tensorflow", "steps_per_execution": 8}, "backend", "error", "train.backend to jax"),
        (
            {"backend": "tensorflow", "traits": (Trait(kind="accumulates", detail="2"),)},
            "backend",
            "error",
            "train.backend to jax",
        ),
        ({"precision": "float32"}, "float32", "warning", "auto"),
        ({"precision": "mixed_float16"}, "float16", "warning", "auto"),
        ({"has_libtpu": False}, "interpreter", "note", "make tpu-compiler"),
        ({"callbacks": ("pure_callback in lambda",)}, "callback", "error", "keras.ops"),
        ({"callbacks": ("debug_callback",)}, "callback", "warning", "remove prints"),
        ({"model_parallel": 3, "batch_size": 1024}, "model_parallel", "error", "divisor of 8"),
        (
            {"model_parallel": 2, "layout": {".*attention.*": (None, "model")}},
            "layout",
            "error",
            "hidden/kernel",
        ),
        ({"layers": (Layer(name="d", kind="Dense", dtype="float64"),)}, "float64", "error", "float32"),
        ({"unanswered": ("it took too long", "--limit 900")}, "not_compiled", "note", "--limit 900"),
        ({"is_fast": True}, "fast", "note", "without --fast"),
        ({"step_s": 5e-6}, "too_small", "note", "larger batch"),
        ({"step": Compiled(batch_size=1024, error="no strings")}, "does_not_compile", "error", "keras.ops"),
        (
            {"step": Compiled(batch_size=1024, error="51 rows", error_cause="layout", error_remedy="pad it")},
            "layout",
            "error",
            "pad it",
        ),
        (
            {"layers": (Layer(name="half", kind="Dense", dtype="float16"),)},
            "float16",
            "warning",
            "no dtype, or mixed_bfloat16",
        ),
        (
            {"layers": (Layer(name="odd", kind="Dense", matrices=((128, 130),)),)},
            "padding",
            "warning",
            "128 units",
        ),
    ],
)
def test_each_rule_finds_its_fault_and_nothing_else(case, changes, rule, severity, words):
    (found,) = [each for each in findings(case(**changes)) if each.rule == rule]

    assert found.severity == severity
    assert words in found.remedy
    if rule != "model_parallel":  # three devices of a copy leave two replicas, which change the batch's part
        assert [each.rule for each in findings(case(**changes))] == [rule]


def test_a_step_that_does_not_fit_names_what_it_needs_and_the_batch_that_does(case):
    step = Compiled(batch_size=1024, error="Ran out", is_out_of_memory=True, peak_bytes=17 * 2**30)

    (found,) = findings(case(step=step, fits_batch=512))

    assert found.rule == "does_not_fit"
    assert "17.00 GiB of the 15.75 GiB" in found.message
    assert found.remedy.startswith("train.batch_size: 512, which was compiled and fits")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {},
            "with train.accumulate_steps for as many examples in an update (its sums of gradients need",
        ),
        ({"accumulate_steps": 2}, "with train.accumulate_steps for as many examples in an update; or"),
        ({"backend": "tensorflow"}, ""),
    ],
)
def test_accumulation_is_advised_where_it_works_and_not_as_if_it_took_no_memory(case, changes, words):
    step = Compiled(batch_size=1024, error="Ran out", is_out_of_memory=True)

    found = next(each for each in findings(case(step=step, **changes)) if each.rule == "does_not_fit")

    assert words in found.remedy
    assert bool(words) == ("accumulate" in found.remedy)


@pytest.mark.parametrize(
    ("changes", "begins"),
    [
        ({}, "a smaller train.batch_size (preflight --search finds the largest that fits), with"),
        ({"search_s": 30.0}, "a smaller train.batch_size, with"),
        ({"search_s": 30.0, "fails_batch": 8}, "a slice with more devices or memory"),
        ({"batch_size": 8}, "a slice with more devices or memory"),
        ({"batch_size": 8, "state_bytes": 10 * 2**30}, "train.model_parallel with a train.layout"),
    ],
)
def test_the_remedy_of_a_step_that_does_not_fit_is_one_that_can_make_it(case, changes, begins):
    step = Compiled(batch_size=1024, error="Ran out", is_out_of_memory=True)

    found = next(each for each in findings(case(step=step, **changes)) if each.rule == "does_not_fit")

    assert found.remedy.startswith(begins)


def test_weights_beyond_the_memory_are_mended_by_an_optimizer_only_if_they_fit_without_its_state(case):
    one = replace(case().question.slice, devices=1)

    (state,) = findings(case(state_bytes=20 * 2**30, parameters=2**30))
    (weights,) = findings(case(state_bytes=60 * 2**30, parameters=5 * 2**30))
    (alone,) = findings(case(state_bytes=60 * 2**30, parameters=5 * 2**30, slice=one))

    assert state.remedy.startswith("an optimizer with fewer numbers for each weight")
    assert weights.remedy.startswith("fewer weights")
    assert "or train.model_parallel with" in weights.remedy
    assert "or a slice with more devices and train.model_parallel with" in alone.remedy


def test_a_fast_look_that_does_not_fit_is_to_be_asked_again_in_full(case):
    step = Compiled(batch_size=1024, error="Ran out", is_out_of_memory=True, peak_bytes=17 * 2**30)

    (refused, said) = findings(case(step=step, fits_batch=512, is_fast=True))

    assert (refused.rule, said.rule) == ("does_not_fit", "fast")
    assert refused.remedy.startswith("run without --fast")
    assert "train.batch_size: 512" in refused.remedy


def test_what_is_tensorflows_own_is_refused_on_jax_and_not_judged_where_tensorflow_trains(case):
    step = Compiled(
        batch_size=1024, error="a loss of TensorFlow's", error_cause="tensorflow", error_remedy="keras.ops"
    )

    (refused,) = findings(case(step=step))
    (said,) = findings(case(step=step, backend="tensorflow"))

    assert (refused.rule, refused.severity) == ("does_not_compile", "error")
    assert refused.remedy == "keras.ops; or --set train.backend=tensorflow, which was not checked"
    assert (said.rule, said.severity) == ("backend", "note")
    assert "is not known. A loss of TensorFlow's" in said.message
    assert said.remedy == "--set train.backend=jax, which can be checked: keras.ops"


def test_an_error_of_the_users_own_code_gets_no_remedy_of_another(case):
    of_theirs = Compiled(batch_size=1024, error="model.py, line 7: no such axis", error_cause="other")
    of_the_compiler = Compiled(batch_size=1024, error="unsupported")

    (theirs,), (the_compilers,) = (findings(case(step=step)) for step in (of_theirs, of_the_compiler))

    assert theirs.remedy.startswith("another line there")
    assert the_compilers.remedy.startswith("fixed shapes, numbers instead of strings")


def test_what_the_compiler_for_a_cpu_refuses_is_not_known_of_a_tpu(case):
    step = Compiled(batch_size=1024, error="no bfloat16", error_cause="compiler", error_remedy="float32")

    (refused,), (unknown,) = (findings(case(step=step, target=target)) for target in ("tpu", "cpu"))

    assert (refused.rule, refused.remedy) == ("does_not_compile", "float32")
    assert (unknown.rule, unknown.severity) == ("not_compiled", "note")
    assert "whether it does for a TPU is not known" in unknown.message
    assert "make tpu-compiler" in unknown.remedy


def test_what_computes_on_the_host_only_is_refused_under_tensorflow_too(case):
    step = Compiled(batch_size=1024, error="hashed", error_cause="host", error_remedy="preprocessing_fn")

    (refused, _) = findings(case(step=step, backend="tensorflow"))

    assert (refused.rule, refused.remedy) == ("does_not_compile", "preprocessing_fn")


@pytest.mark.parametrize("target", ["tpu", "cpu"])
def test_weights_that_are_more_than_the_memory_do_not_fit_whoever_compiled(case, target):
    found = findings(case(state_bytes=20 * 2**30, target=target))

    assert [(each.rule, each.severity) for each in found] == [("does_not_fit", "error")]
    assert "20.00 GiB of the 15.75 GiB" in found[0].message
    assert findings(case(state_bytes=10 * 2**30, target=target)) == ()


def test_where_nothing_was_compiled_no_finding_says_that_something_was(case):
    without_libtpu = replace(case(backend="tensorflow", has_libtpu=False), answer=None)

    found = {each.rule: each for each in findings(without_libtpu)}

    assert found["backend"].message.endswith("whether this model trains on v5e-8 was not checked")
    assert "were not checked" in found["interpreter"].message
    told = " ".join(f"{each.message} {each.remedy}" for each in found.values())
    assert "what was compiled" not in told
    assert "was checked" not in told.replace("was not checked", "")


def test_layers_are_named_with_the_line_that_made_them(case):
    layers = (
        Layer(name="half", kind="Dense", matrices=((256, 130),), dtype="float16", line="model.py, line 3"),
        Layer(name="wide", kind="Dense", matrices=((130, 128),), dtype="float64", line="model.py, line 4"),
    )
    told = {each.rule: each.message for each in findings(case(layers=layers))}
    assert told["padding"].startswith("layer half (model.py, line 3): 130 units")
    assert told["float16"].startswith("half (model.py, line 3): ")
    assert told["float64"].startswith("wide (model.py, line 4): ")


def test_loops_are_told_with_the_turns_that_are_counted_and_those_that_are_not(case):
    loops = (Loop(layer="hidden", turns=1200), Loop(layer="output", turns=None), Loop(layer="", turns=3))
    step = Compiled(batch_size=1024, peak_bytes=2**20, flops=1e9, moved_bytes=1e7, loops=loops)

    # Of a step that takes longer than estimated, it is not said that it is too short.
    (found,) = findings(case(step=step, step_s=5e-6))

    assert (found.rule, found.severity) == ("loop", "note")
    assert "layer hidden, 1,200 turns; a loop in no layer, 3 turns: matrix products" in found.message
    assert "layer output: how often is not known" in found.message
    (known,) = findings(case(step=replace(step, loops=loops[:1])))
    assert "not known" not in known.message
    assert typed(Compiled, json.loads(json.dumps(asdict(step)))) == step


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        ({}, {"backend"}),
        ({"backend": "jax"}, {"does_not_compile"}),
        # Where TensorFlow does not train, JAX's verdict counts.
        ({"has_tensorflow": False}, {"backend", "does_not_compile"}),
        ({"slice": FOUR_HOSTS}, {"backend", "does_not_compile"}),
    ],
)
@pytest.mark.parametrize("cause", ["tensorflow", "value"])
def test_what_jax_alone_refuses_is_not_known_of_tensorflow(case, changes, rules, cause):
    step = Compiled(batch_size=1024, error="it refuses", error_cause=cause, error_remedy="otherwise")

    found = findings(case(**{"backend": "tensorflow", "step": step, **changes}))

    assert {each.rule for each in found} == rules
    assert all("otherwise" in each.remedy for each in found if each.rule == "does_not_compile")
