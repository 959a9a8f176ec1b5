"""The client of the serving check, in this process and on models of a few lines.

The serving check starts it in a Python that knows no package of ours; tests/integration/test_serving_check.py
has that.
"""

import json
import os
import socket

import numpy as np
import pytest

from slipway.components.serving_check import client

pytestmark = [
    pytest.mark.slow,
    # TensorFlow's own imports warn of what they will change in themselves.
    pytest.mark.filterwarnings("default"),
]
LOWEST = -(2**63)


def row(**columns):
    import tensorflow as tf

    example = tf.train.Example()
    for name, values in columns.items():
        kinds = {bytes: "bytes_list", int: "int64_list", float: "float_list"}
        feature = example.features.feature[name]
        if values:
            getattr(feature, kinds[type(values[0])]).value.extend(values)
        else:
            feature.SetInParent()
    return example.SerializeToString(deterministic=True)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Save a model whose answer is twice `x`, plus a fault; signatures by name."""
    import tensorflow as tf

    def save(fault=None, *, signatures=("serving_default", "serve_raw", "transform_features")):
        model = tf.Module()
        spec = {"x": tf.io.FixedLenFeature([1], tf.float32, 0.0), "n": tf.io.VarLenFeature(tf.int64)}

        def answer(x):
            if fault == "not finite":
                x = tf.where(x < -1e8, x / 0.0, x)
            if fault == "refuses":
                tf.debugging.assert_greater(x, -1e8, message="too small")
            if fault == "batch":
                x -= tf.reduce_mean(x)
            return {"scores": 2 * x}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
        def serving_default(examples):
            return answer(tf.io.parse_example(examples, spec)["x"])

        @tf.function(
            input_signature=[
                tf.TensorSpec([None, 1], tf.float32, name="x"),
                tf.TensorSpec([None, None], tf.int64, name="n"),
            ]
        )
        def serve_raw(x, n):
            known = tf.reduce_sum(tf.cast(n != LOWEST, tf.float32), axis=1, keepdims=True)
            return {"scores": answer(x)["scores"] + 0 * known}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
        def transform_features(examples):
            parsed = tf.io.parse_example(examples, spec)
            return {"x_scaled": parsed["x"] / 10, "word": tf.strings.as_string(parsed["x"])}

        named = {
            "serving_default": serving_default,
            "serve_raw": serve_raw,
            "transform_features": transform_features,
        }
        folder = tmp_path_factory.mktemp("model")
        chosen = {name: named[name] for name in signatures}
        model.functions = list(chosen.values())
        tf.saved_model.save(model, str(folder), signatures=chosen)
        return folder

    return save


@pytest.fixture
def asked(tmp_path, capsys):
    """Ask a model; return what the client told, by kind of event, and its answers."""
    import tensorflow as tf

    rows = [row(x=[1.0], n=[1, 2, 3]), row(x=[4.0], n=[]), row(x=[-2.5], n=[7])]
    strange = [row(x=[0.0]), row(x=[-1e9]), row()]

    def ask(model):
        for name, each in (("real", rows), ("full", rows), ("perturbed", strange)):
            with tf.io.TFRecordWriter(str(tmp_path / f"{name}.tfrecord")) as writer:
                for record in each:
                    writer.write(record)
        questions = {"alone_rows": 2, "batches": [1, 7], "budget_s": 0}
        (tmp_path / "questions.json").write_text(json.dumps(questions))
        capsys.readouterr()
        assert client.main(str(model), str(tmp_path), import_s=1.5) == 0
        told = {}
        for line in capsys.readouterr().out.splitlines():
            event = json.loads(line)
            told.setdefault(event.pop("event"), []).append(event)
        path = tmp_path / "answers.npz"
        return told, dict(np.load(path)) if path.exists() else {}

    return ask


def test_good_model_is_asked_by_every_signature_and_all_answers_agree(saved, asked):
    told, answers = asked(saved())
    wanted = [[2], [8], [-5]]
    assert {name: values.tolist() for name, values in answers.items() if "/" not in name} == {
        "real": wanted, "alone": wanted[:2], "raw": wanted
    }  # fmt: skip
    assert set(answers) - {"real", "alone", "raw"} == {"transformed/x_scaled"}  # no text
    assert answers["transformed/x_scaled"].ravel() == pytest.approx([0.1, 0.4, -0.25])
    assert not {"failed", "refused", "not_finite"} & set(told)
    assert [each["stage"] for each in told["stage"]] == [
        "loading", "answering real rows", "answering rows one by one", "answering raw columns",
        "transforming", "answering perturbed rows", "answering batches of 1", "answering batches of 7",
    ]  # fmt: skip


def test_what_a_server_costs_is_told(saved, asked):
    told, _ = asked(saved())
    [imported], [loaded], [memory] = told["imported"], told["loaded"], told["memory"]
    assert imported["import_s"] == 1.5
    assert loaded["load_s"] > 0
    assert memory["memory_bytes"] >= loaded["memory_before_bytes"] > 0
    assert [each["rows"] for each in told["latency"]] == [1, 7]
    for each in told["latency"]:
        assert each["calls"] == 20  # at least so many, however short the time
        assert 0 < each["p50_ms"] <= each["p99_ms"]
        assert each["rows_per_s"] > 0


def test_signatures_are_told_as_a_server_reads_them(saved, asked):
    [told] = asked(saved())[0]["signatures"]
    found = told["signatures"]
    assert set(found) == {"serving_default", "serve_raw", "transform_features"}
    inputs = {name: values[:2] for name, values in found["serve_raw"]["inputs"].items()}
    assert inputs == {"x": ["float32", [None, 1]], "n": ["int64", [None, None]]}
    assert [*found["serving_default"]["outputs"]] == ["scores"]


def test_row_without_a_finite_answer_is_told_by_its_number(saved, asked):
    told, _ = asked(saved("not finite"))
    assert told["not_finite"] == [{"row": 1}]
    assert "refused" not in told


def test_row_that_is_refused_is_found_though_all_are_sent_at_once(saved, asked):
    told, answers = asked(saved("refuses"))
    [refused] = told["refused"]
    assert (refused["row"], refused["type"]) == (1, "InvalidArgumentError")
    assert refused["error"].startswith("InvalidArgumentError: ")
    assert answers["real"].tolist() == [[2], [8], [-5]]


def test_rows_that_change_each_others_answers_are_seen_by_those_asked_alone(saved, asked):
    _, answers = asked(saved("batch"))
    assert answers["alone"].tolist() == [[0], [0]]
    assert answers["real"][:2].tolist() != [[0], [0]]


def test_model_with_its_own_signature_alone_is_asked_by_that(saved, asked):
    told, answers = asked(saved(signatures=("serving_default",)))
    assert set(answers) == {"real", "alone"}
    assert "failed" not in told


def test_model_without_a_signature_to_serve_is_not_asked(saved, asked):
    told, answers = asked(saved(signatures=("transform_features",)))
    assert answers == {}
    assert [each["stage"] for each in told["stage"]] == ["loading"]
    assert "memory" in told


def test_folder_that_holds_no_model_is_a_finding(tmp_path, asked):
    told, answers = asked(tmp_path / "none")
    [failed] = told["failed"]
    assert failed["stage"] == "loading"
    assert failed["error"].startswith("OSError: SavedModel file does not exist")
    assert answers == {}


def test_outputs_without_a_number_are_a_finding_and_nothing_more_is_asked():
    import tensorflow as tf

    with pytest.raises(TypeError, match="no output of a, b holds numbers"):
        client._side_by_side({"b": tf.constant(["x"]), "a": tf.constant([1])})


def test_several_outputs_stand_side_by_side_in_the_order_of_their_names():
    import tensorflow as tf

    outputs = {"b": tf.constant([[1.0, 2.0], [3.0, 4.0]]), "a": tf.constant([[5.0], [6.0]])}
    assert client._side_by_side(outputs).tolist() == [[5, 1, 2], [6, 3, 4]]


@pytest.mark.parametrize("name", ["slipway", "slipway.components.errors", "tfx.v1", "tensorflow_transform"])
def test_what_no_server_has_cannot_be_imported(name):
    with pytest.raises(ModuleNotFoundError, match="a model server has no"):
        client._OnlyTensorFlow().find_spec(name)


@pytest.mark.parametrize("name", ["tensorflow.python", "numpy", "slipways", "json"])
def test_what_tensorflow_needs_is_left_to_others(name):
    assert client._OnlyTensorFlow().find_spec(name) is None


def test_client_started_ahead_takes_arguments_that_come_in_pieces(monkeypatch):
    changed = []
    monkeypatch.setattr(os, "setpgid", lambda process, group: changed.append((process, group)))
    monkeypatch.setattr(os, "dup2", lambda _, target: changed.append(target))
    ours, theirs = socket.socketpair()
    read, write = os.pipe()
    request = json.dumps({"group": 77, "arguments": ["model", "folder", "9"]}).encode() + b"\n"
    with ours, theirs:
        socket.send_fds(ours, [request[:10]], [read, write])
        ours.sendall(request[10:])
        assert client.wait_for_arguments(theirs) == ["model", "folder", "9"]
    os.close(read)
    os.close(write)
    assert changed == [(0, 77), 1, 2]


def test_message_of_an_error_is_its_first_line_and_short():
    assert client._words(ValueError("\n  one\ntwo")) == "ValueError: one"
    assert client._words(ValueError()) == "ValueError: no message"
    graph = 'Graph execution error:\n\nDetected at node Take\n  File "/a.py", line 7, in call\n\nno row 3\n'
    assert client._words(ValueError(graph)) == "ValueError: no row 3"
    devices = "Graph execution error:\n\n2 root error(s) found.\n  (0) INVALID_ARGUMENT:  no row 3\n"
    assert client._words(ValueError(devices)) == "ValueError: (0) INVALID_ARGUMENT:  no row 3"
    assert len(client._words(ValueError("x" * 999))) == 300
