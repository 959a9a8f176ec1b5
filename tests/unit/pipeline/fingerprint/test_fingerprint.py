"""The key, and what it tells apart."""

import copy
import json
import pickle
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.pipeline.errors import PipelineError
from slipway.pipeline.fingerprint.fingerprint import Fingerprint, canonical_json, explain, flatten_params

PARTS = {
    "code:workloads/taxi/model.py": "aa",
    "data:trips-01.csv": "d1",
    "data:trips-02.csv": "d2",
    "data:trips-03.csv": "d3",
    "param:train.batch_size": "512",
    "external:latest_blessed_model": "7",
    "stack:tfx": "1.20.0",
    "upstream:Transform": "k1",
}


# ---- the key


def test_key_is_pinned():
    parts = {"stack:tfx": "1.21.0", "code:a.py": "aa"}
    assert canonical_json(parts) == '{"code:a.py":"aa","stack:tfx":"1.21.0"}'
    assert Fingerprint(parts).key == "5a1bfd72ea75c42d2da91fc7c5989a3ac4f95c3d3cf417c87cd98539ef308e6b"


def test_key_does_not_depend_on_the_order_of_parts():
    turned = Fingerprint(dict(reversed(PARTS.items())))
    assert turned.key == Fingerprint(PARTS).key
    assert turned == Fingerprint(PARTS)
    assert len({turned, Fingerprint(PARTS)}) == 1


@pytest.mark.parametrize("name", PARTS)
def test_every_part_counts(name):
    assert Fingerprint(PARTS | {name: "other"}).key != Fingerprint(PARTS).key
    assert Fingerprint({n: v for n, v in PARTS.items() if n != name}).key != Fingerprint(PARTS).key


def test_fingerprint_is_sealed_against_later_changes():
    source = dict(PARTS)
    found = Fingerprint(source)
    source["stack:tfx"] = "2"
    assert found.parts["stack:tfx"] == "1.20.0"
    with pytest.raises(TypeError):
        found.parts["stack:tfx"] = "2"


def test_fingerprint_travels_between_processes():
    found = Fingerprint(PARTS)
    assert pickle.loads(pickle.dumps(found)) == found  # noqa: S301  (made one line above)
    assert copy.deepcopy(found).key == found.key


@pytest.mark.parametrize("name", ["params:x", "x", "code", ":x", ""])
def test_part_of_unknown_kind_is_refused(name):
    with pytest.raises(PipelineError, match="has no known kind") as error:
        Fingerprint({name: "1"})
    kinds = ", ".join(f"{kind}:" for kind in Fingerprint.KINDS)
    assert error.value.hint == f"Begin its name with one of {kinds}"


def test_part_that_is_not_text_is_refused():
    with pytest.raises(PipelineError, match=r"'param:x': 5 is not text"):
        Fingerprint({"param:x": 5})


def test_file_names_outside_of_unicode_are_no_obstacle():
    found = Fingerprint({"data:caf\udce9.csv": "1"})
    assert Fingerprint.from_json(found.to_json()) == found


# ---- JSON


def test_json_does_not_depend_on_the_order_of_parts():
    assert Fingerprint(dict(reversed(PARTS.items()))).to_json() == Fingerprint(PARTS).to_json()


@given(st.dictionaries(st.text().map("data:{}".format), st.text()))
def test_json_gives_the_fingerprint_back(parts):
    found = Fingerprint(parts)
    assert Fingerprint.from_json(found.to_json()) == found


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", "null", "5", '{"parts": 5, "key": ""}', '{"parts": [1]}', "x" * 61]
)
def test_text_that_is_no_fingerprint_is_refused(text):
    with pytest.raises(PipelineError) as error:
        Fingerprint.from_json(text)
    assert re.fullmatch(
        rf"not a fingerprint: {re.escape(repr(text[:60]))} \(\w+Error\)\n"
        "hint: The record is damaged or of another version; run the node with --no-cache.",
        str(error.value),
    )


def test_edited_record_is_recognised_as_damaged():
    with pytest.raises(PipelineError, match="damaged fingerprint") as error:
        Fingerprint.from_json(Fingerprint(PARTS).to_json().replace("512", "513"))
    assert error.value.hint == "The record was truncated or edited; run the node with --no-cache."


# ---- parameters

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
# Few and awkward keys, so that two random mappings often almost collide.
KEYS = st.sampled_from(["a", "b", "a.b", "a[0]", "0", "", '"', "true", 0, 1.5, None])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
MAPPINGS = st.dictionaries(KEYS, VALUES, max_size=3)


def typed(value):
    """A value with the types of everything in it, and without the order of keys."""
    if isinstance(value, dict):
        return frozenset((typed(key), typed(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(typed(item) for item in value)
    return type(value).__name__, repr(value)


def turned(value):
    if isinstance(value, dict):
        return {key: turned(item) for key, item in reversed(value.items())}
    return [turned(item) for item in value] if isinstance(value, list) else value


def test_flattened_parameters_are_pinned():
    params = {
        "batch_size": 512,
        "layers": [64, 32],
        "optimizer": {"name": "adam", "rate": 1e-3, "extra": {}},
        "class_weights": {0: 1.0, 1: 5.0},
        "slices": {"a.b": None},
        "cache": True,
    }
    assert flatten_params("param:train", params) == {
        "param:train.batch_size": "512",
        "param:train.cache": "true",
        "param:train.class_weights[0]": "1.0",
        "param:train.class_weights[1]": "5.0",
        "param:train.layers": "[64,32]",
        "param:train.optimizer.extra": "{}",
        "param:train.optimizer.name": '"adam"',
        "param:train.optimizer.rate": "0.001",
        'param:train.slices["a.b"]': "null",
    }


@pytest.mark.parametrize("prefix", ["", "param:"])
def test_prefix_that_ends_a_kind_needs_no_dot(prefix):
    assert flatten_params(prefix, {"train": {"steps": 5}}) == {f"{prefix}train.steps": "5"}


def test_number_truth_and_text_stay_apart():
    values = [1, 1.0, "1", True, "true", None, "null", "", [], {}, [1], [[1]], {"1": 1}, {1: 1}]
    values += [[{"1": 1}], [{1: 1}], [{1.0: 1}], [{"true": 1}], [{True: 1}], [{None: 1}]]
    assert len({tuple(flatten_params("p", {"x": value}).items()) for value in values}) == len(values)


@given(MAPPINGS)
def test_order_of_keys_does_not_matter(params):
    assert list(flatten_params("p", params).items()) == list(flatten_params("p", turned(params)).items())
    assert canonical_json(params) == canonical_json(turned(params))


@given(MAPPINGS, MAPPINGS)
def test_equal_texts_mean_equal_values(one, other):
    same = typed(one) == typed(other)
    assert (flatten_params("p", one) == flatten_params("p", other)) == same
    assert (canonical_json(one) == canonical_json(other)) == same


@given(st.recursive(SCALARS, lambda v: st.lists(v) | st.dictionaries(st.text(max_size=3), v), max_leaves=8))
def test_canonical_text_of_a_json_value_is_json(value):
    assert typed(json.loads(canonical_json(value))) == typed(value)


@pytest.mark.parametrize("value", [{1, 2}, b"x", object, {"deep": [{"x": b""}]}, {(1, 2): 3, "y": [b""]}])
def test_value_without_canonical_text_is_refused_by_name(value):
    with pytest.raises(PipelineError, match=r"p\.x.* has no canonical text"):
        flatten_params("p", {"x": value})


@pytest.mark.parametrize("params", [{b"k": 1}, {"y": {b"k": 1}}, {"y": [{b"k": 1}]}])
def test_key_without_canonical_text_is_refused_by_the_name_of_what_holds_it(params):
    name = "p.x.y" if "y" in params else "p.x"
    with pytest.raises(PipelineError) as error:
        flatten_params("p.x", params)
    assert str(error.value) == (
        f"{name}: b'k' is a bytes, which has no canonical text for the cache key\n"
        "hint: Use text, numbers, true, false, null, lists and mappings of them."
    )
    with pytest.raises(PipelineError, match=r"^value: b'k' is a bytes"):
        canonical_json(params)


# ---- the words


def test_first_run_is_called_so():
    assert explain(Fingerprint(PARTS), None) == ["first run"]


def test_equal_fingerprints_have_no_reasons():
    assert explain(Fingerprint(PARTS), Fingerprint(PARTS)) == []


KINDS = st.sampled_from(Fingerprint.KINDS)
PART_MAPS = st.dictionaries(st.tuples(KINDS, st.sampled_from("abc")).map(":".join), st.sampled_from("12"))


@given(PART_MAPS, PART_MAPS)
def test_there_is_a_reason_exactly_when_the_keys_differ(new, old):
    one, other = Fingerprint(new), Fingerprint(old)
    assert bool(explain(one, other)) == (one.key != other.key)


# ---- the import


def test_import_loads_nothing_heavy():
    program = "import sys, slipway.pipeline.fingerprint.fingerprint; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    heavy = {
        "tfx",
        "tensorflow",
        "apache_beam",
        "pydantic",
        "yaml",
        "numpy",
        "logging",
        "concurrent",
        "asyncio",
    }
    assert heavy.isdisjoint(loaded.split())
