"""The node before the Trainer: what it writes, and what it stops."""

import json
import sys
from types import SimpleNamespace

import pytest
from tensorflow_metadata.proto.v0 import statistics_pb2

pytestmark = [pytest.mark.slow, pytest.mark.external]

SCHEMA = """
feature { name: "x" type: FLOAT presence { min_fraction: 1 } shape { dim { size: 256 } } }
feature { name: "y" type: FLOAT presence { min_fraction: 1 } shape { dim { size: 1 } } }
"""
OWN_PRICE = {"usd": 0.9, "month": "2026-11", "source": "yours"}


@pytest.fixture
def preflight(project, tmp_path, monkeypatch, jax_python):
    """Calls the component as its executor would, for a model of tests/data/preflight; returns the report."""
    from tfx.types.standard_artifacts import ExampleStatistics

    from slipway.components.preflight import compiler, component

    models = project / "tests" / "data" / "preflight"
    monkeypatch.syspath_prepend(str(models))
    # The quick way, and the same with libtpu and without: the other tests compile for TPUs.
    monkeypatch.setattr(compiler, "COMPILERS", compiler.COMPILERS[1:])
    (tmp_path / "graph/transformed_metadata").mkdir(parents=True)
    (tmp_path / "graph/transformed_metadata/schema.pbtxt").write_text(SCHEMA, encoding="utf-8")
    (tmp_path / "examples/Split-train").mkdir(parents=True)
    (tmp_path / "examples/Split-train/part-0").write_bytes(b"")
    (tmp_path / "statistics/Split-train").mkdir(parents=True)
    listed = statistics_pb2.DatasetFeatureStatisticsList(datasets=[{"num_examples": 5000}])
    (tmp_path / "statistics/Split-train/FeatureStats.pb").write_bytes(listed.SerializeToString())
    statistics = ExampleStatistics()
    statistics.uri = str(tmp_path / "statistics")
    (tmp_path / "report").mkdir()

    from slipway.components.parameters import as_parameter

    def call(model: str, *, limit_s: float = 600.0):
        wanted = {"name": "v5e-8", "generation": "v5e", "devices": 8, "topology": "2x4"}
        component.Preflight.test_call(
            transformed_examples=SimpleNamespace(uri=str(tmp_path / "examples")),
            transform_graph=SimpleNamespace(uri=str(tmp_path / "graph")),
            statistics=statistics,
            report=SimpleNamespace(uri=str(tmp_path / "report")),
            workload="tests",
            model=model if "." in model else f"preflight_models.{model}",
            step=as_parameter({"hyperparameters": {}, "label": "y", "batch_size": 512}),
            tpu_slice=as_parameter(wanted),
            training=as_parameter({"backend": "jax", "epochs": 3, "prices": {"v5e": OWN_PRICE}}),
            images={},
            limit_s=limit_s,
        )
        return json.loads((tmp_path / "report/preflight.json").read_text(encoding="utf-8"))

    yield call
    sys.modules.pop("preflight_models", None)


def test_a_step_that_does_not_compile_stops_the_run_and_the_verdict_holds_the_result(preflight):
    from slipway.components.errors import GateStopError

    with pytest.raises(GateStopError, match="strings") as stopped:
        preflight("text_input")

    assert stopped.value.verdict["preflight"]["workload"] == "tests"
    assert "findings" not in stopped.value.verdict  # the report would take them for the data gate's
    assert any("does_not_compile" in line for line in stopped.value.verdict["lines"])


def test_a_step_that_compiles_lets_the_run_go_on_and_says_what_was_not_checked(preflight):
    document = preflight("fine")

    assert document["slices"][0]["target"] == "cpu"
    assert [each["rule"] for each in document["slices"][0]["findings"]] == ["interpreter"]


def test_a_loop_of_ones_own_lets_the_run_go_on_and_says_that_it_is_not_judged(
    preflight, tmp_path, monkeypatch
):
    monkeypatch.syspath_prepend(tmp_path)
    text = "def build_model(features, hyperparameters): ...\ndef fit(model, data, context): ...\n"
    (tmp_path / "looping.py").write_text(text)

    document = preflight("looping.build_model")

    [finding] = document["slices"][0]["findings"]
    assert (finding["rule"], finding["severity"]) == ("not_compiled", "note")
    assert "fit(model, data, context)" in finding["message"]


def test_a_compilation_that_takes_too_long_is_ended_and_lets_the_run_go_on(preflight):
    document = preflight("fine", limit_s=0.5)

    (finding, *_) = document["slices"][0]["findings"]
    assert finding["rule"] == "not_compiled"
    assert "preflight.limit_s" in finding["remedy"]
    assert document["slices"][0]["target"] is None


def test_own_prices_and_the_rows_of_the_training_reach_the_estimate_of_the_node(preflight, monkeypatch):
    from slipway.components.preflight import component
    from slipway.components.preflight.question_and_answer import Answer, Compiled

    step = Compiled(batch_size=512, peak_bytes=2**20, flops=1e9, moved_bytes=1e9)
    monkeypatch.setattr(component, "run_compiler", lambda *_, **__: Answer(step=step, target="tpu"))

    (found,) = preflight("fine")["slices"]

    assert found["estimate"]["price"] == "0.9 USD a chip-hour of 2026-11, yours"
    seconds = 5000 // 512 * 512 * 3 / found["estimate"]["examples_per_s"]
    assert found["estimate"]["training_s"] == pytest.approx(seconds)
    assert found["estimate"]["cost_usd"] == pytest.approx(seconds / 3600 * 8 * 0.9)


def test_many_small_files_are_reported_by_their_size(preflight, tmp_path, monkeypatch):
    from slipway.components.preflight import input_and_runtime_rules

    monkeypatch.setattr(input_and_runtime_rules, "MANY_BYTES", 100)
    (tmp_path / "examples/Split-train/part-1").write_bytes(b"x" * 200)

    findings = preflight("fine")["slices"][0]["findings"]

    assert [each["message"] for each in findings if each["rule"] == "files"] == [
        "2 files of training examples of 0.0 MiB each: opening them takes longer than reading"
    ]
