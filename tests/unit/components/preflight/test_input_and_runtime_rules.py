"""What surrounds the step: rows, files, buckets, the Python that trains, and of which inputs it is said."""

import pytest

from slipway.components.preflight.input_and_runtime_rules import RULES
from slipway.components.preflight.question_and_answer import Slice
from slipway.components.preflight.step_rules import findings

FOUR_HOSTS = Slice(name="v5e-16", generation="v5e", devices=16, hosts=4, topology="4x4")


def of_these_rules(evidence):
    return [each for rule in RULES for each in rule(evidence)]


def found(evidence):
    """What these rules find, which is all that is found: no other rule takes it for a fault of its own."""
    told = of_these_rules(evidence)
    assert findings(evidence) == tuple(told)
    return told


def test_nothing_is_found_where_nothing_is_wrong(case):
    assert found(case()) == []
    assert found(case(train_rows=1024)) == []
    assert found(case(train_rows=4096, steps_per_execution=4)) == []
    assert found(case(blow_up_trials=2, has_own_loop=True, has_best_nowhere=True)) == []
    assert found(case(has_best_of_trials=True)) == []


@pytest.mark.parametrize(
    ("changes", "rule", "severity", "words"),
    [
        ({"slice": FOUR_HOSTS, "has_best_nowhere": True}, "hosts", "error", "train.checkpoint.folder"),
        ({"slice": FOUR_HOSTS, "blow_up_trials": 2}, "hosts", "error", "train.blow_up.trials to 0"),
        ({"slice": FOUR_HOSTS, "has_best_of_trials": True}, "hosts", "error", "tune=null"),
        ({"train_rows": 1023}, "rows", "error", "train.batch_size=1016"),
        ({"train_rows": 4096, "steps_per_execution": 5}, "rows", "error", "train.steps_per_execution=4"),
        ({"train_rows": 7}, "rows", "error", "a smaller slice"),
        ({"slice": FOUR_HOSTS, "train_files": 3, "input_cache": "none"}, "files", "error", "Beam shards"),
        ({"slice": FOUR_HOSTS, "train_files": 3}, "files", "warning", "train.input.cache: memory or file"),
        ({"slice": FOUR_HOSTS, "train_files": 6}, "files", "warning", "a multiple of 4"),
        ({"train_files": 4000, "train_bytes": 2**32}, "files", "warning", "100 MB"),
        (
            {"data_regions": {"gs://trips": "EUROPE-WEST4"}, "tpu_region": "us-central1"},
            "region",
            "warning",
            "a bucket in us-central1",
        ),
        (
            {"bucket_by_length": {"words": [16, 64]}},
            "buckets",
            "note",
            "each length costs a",
        ),
        ({"runtime": {"keras": "3"}}, "runtime", "note", "train.interpreter=.venv-tpu/bin/python"),
        ({"backend": "tensorflow", "runtime": {"libtpu": "0"}}, "runtime", "note", "training-tpu-tensorflow"),
        ({"made_otherwise": "a run of Tuesday"}, "inputs", "warning", "with the settings of this training"),
        ({"changed_since": "a run of Tuesday"}, "inputs", "note", "if the inputs are others now"),
        ({"searched": {"units": 8}}, "search", "note", "--set tune=null"),
    ],
)
def test_each_rule_finds_its_fault_and_no_other_rule_does(case, changes, rule, severity, words):
    asked = case(**changes)
    (told,) = of_these_rules(asked)

    assert (told.rule, told.severity) == (rule, severity)
    assert words in told.remedy
    if asked.backend == "jax":  # of TensorFlow it is said that jax was compiled
        assert found(asked) == [told]


def test_whose_inputs_and_which_values_are_judged_is_named(case):
    told = [
        each.message
        for changes in (
            {"made_otherwise": "RUN"},
            {"changed_since": "RUN"},
            {"searched": {"units": 8, "rate": 0.1}},
        )
        for each in found(case(**changes))
    ]
    assert [each.partition(" the model's inputs in RUN")[1] != "" for each in told] == [True, True, False]
    assert told[2].endswith("what is said here is of {units: 8, rate: 0.1}")


def test_rows_that_are_not_known_are_not_judged(case):
    assert found(case(steps_per_execution=100)) == []


@pytest.mark.parametrize(
    ("interpreter", "words"),
    [
        ("", "the pipeline's own, lacks jax and libtpu"),
        ("tpu/bin/python", "tpu/bin/python, lacks jax and libtpu"),
    ],
)
def test_the_python_that_lacks_packages_is_named(case, interpreter, words):
    (told,) = found(case(runtime={}, interpreter=interpreter))
    assert words in told.message


def test_nothing_is_said_of_a_python_that_was_not_asked_or_of_torch_s(case):
    assert found(case(runtime=None)) == []
    assert of_these_rules(case(backend="torch", runtime={})) == []


def test_as_many_files_as_hosts_are_right(case):
    assert found(case(slice=FOUR_HOSTS, train_files=8)) == []


@pytest.mark.parametrize("files", [3, 6])
def test_files_that_may_be_held_in_memory_are_shared_only_if_they_are_not(case, files):
    for cache, is_certain in (("none", True), ("auto", False)):
        (told,) = found(case(slice=FOUR_HOSTS, train_files=files, input_cache=cache))
        assert ("if the examples do not fit into a host's memory" in told.message) != is_certain


@pytest.mark.parametrize("cache", ["memory", "file"])
@pytest.mark.parametrize("files", [3, 6])
def test_files_that_every_host_reads_need_not_be_shared(case, cache, files):
    assert found(case(slice=FOUR_HOSTS, train_files=files, input_cache=cache)) == []


def test_many_bytes_in_files_of_a_good_size_and_few_bytes_in_small_ones_are_right(case):
    assert found(case(train_files=40, train_bytes=2**32)) == []
    assert found(case(train_files=4000, train_bytes=2**20)) == []


@pytest.mark.parametrize("place", ["US-CENTRAL1", "US", "NAM4"])
def test_a_bucket_that_covers_the_region_is_right(case, place):
    assert found(case(data_regions={"gs://trips": place}, tpu_region="us-central1")) == []


@pytest.mark.parametrize("place", ["EU", "EUR4", "ASIA1", "US-EAST1"])
def test_a_bucket_elsewhere_is_reported(case, place):
    (told,) = found(case(data_regions={"gs://trips": place}, tpu_region="us-central1"))

    assert told.rule == "region"


def test_a_bucket_in_two_regions_covers_no_third(case):
    (told,) = found(case(data_regions={"gs://trips": "NAM4"}, tpu_region="us-west4"))

    assert told.rule == "region"
    assert told.remedy == "a bucket in us-west4, or a slice in us-central1 or us-east1"


def test_nothing_is_said_of_regions_that_are_not_known(case):
    assert found(case(data_regions={"gs://trips": "EU"})) == []


def test_a_python_that_has_what_its_backend_needs_is_right(case):
    assert found(case(runtime={"jax": "0.10", "libtpu": "0.0.42"})) == []


def test_buckets_are_told_with_their_lengths(case):
    (told,) = found(case(bucket_by_length={"words": [16, 64]}))
    assert "the step is compiled 3 times, for words of 16, 64, " in told.message


def test_buckets_are_an_error_with_tensorflow(case):
    asked = case(bucket_by_length={"words": [16]}, backend="tensorflow")
    assert [(each.rule, each.severity) for each in of_these_rules(asked)] == [
        ("buckets", "note"),
        ("buckets", "error"),
    ]


@pytest.mark.parametrize(("categories", "told"), [(None, 0), (2**31, 0), (2**31 + 1, 1)])
def test_codes_that_int32_cannot_tell_apart_are_reported(case, categories, told):
    column = {"name": "user", "dtype": "int64", "shape": [1], "categories": categories}
    words = f"the column user has {2**31 + 1:,} codes"
    assert [each.message.startswith(words) for each in found(case(features=(column,)))] == [True] * told
