import pytest

from components.preflight.findings import findings
from components.preflight.request import Compiled, Layer, Slice

TWO_HOSTS = Slice(name="v5e-16", generation="v5e", devices=16, hosts=4, topology="4x4")


def test_nothing_is_found_where_nothing_is_wrong(case):
    assert findings(case()) == ()


@pytest.mark.parametrize(
    ("changes", "rule", "severity", "words"),
    [
        ({"batch_size": 1001}, "indivisible", "error", "1000 or 1008"),
        ({"batch_size": 8 * 130}, "batch_padding", "warning", "train.batch_size 2048"),
        ({"backend": "torch"}, "backend", "error", "train.backend=jax"),
        ({"backend": "tensorflow", "has_tensorflow": False}, "backend", "error", "train.backend=jax"),
        ({"backend": "tensorflow"}, "backend", "note", "train.backend=jax"),
        ({"precision": "float32"}, "float32", "warning", "auto"),
        ({"precision": "mixed_float16"}, "float16", "warning", "auto"),
        ({"interpreter": ""}, "interpreter", "note", "make tpu-compiler"),
        ({"callbacks": ("pure_callback in lambda",)}, "callback", "error", "keras.ops"),
        ({"callbacks": ("debug_callback",)}, "callback", "warning", "take prints out"),
        ({"model_parallel": 3, "batch_size": 1024}, "model_parallel", "error", "divisor of 8"),
        (
            {"model_parallel": 2, "layout": {".*attention.*": (None, "model")}},
            "layout",
            "error",
            "hidden/kernel",
        ),
        ({"layers": (Layer(name="d", kind="Dense", dtype="float64"),)}, "float64", "error", "float32"),
        ({"slice": TWO_HOSTS, "train_files": 3}, "files", "error", "Beam shards"),
        ({"slice": TWO_HOSTS, "train_files": 6}, "files", "warning", "a multiple of 4"),
        ({"step_s": 5e-6}, "too_small", "note", "larger batch"),
        ({"step": Compiled(batch_size=1024, error="no strings")}, "does_not_compile", "error", "keras.ops"),
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


def test_as_many_files_as_hosts_are_right(case):
    assert findings(case(slice=TWO_HOSTS, train_files=8)) == ()
