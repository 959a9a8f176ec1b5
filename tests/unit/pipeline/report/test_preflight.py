import json

import pytest

from slipway.pipeline.report.preflight import preflight, preflight_part
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.preflight_results import keep
from slipway.pipeline.runs.record import NodeRecord


@pytest.fixture
def example(project):
    """What the command printed of taxi on one slice."""
    return json.loads((project / "tests/data/preflight/preflight.json").read_text(encoding="utf-8"))


def test_a_slice_is_reported_with_its_memory_time_and_bound(example):
    found = preflight_part(example, is_own=False)

    (row,) = found.slices
    assert (row.name, row.is_recommended, row.verdict) == ("v5e-8", True, "✓ can train")
    assert (row.numbers["memory per device"], row.numbers["bound by"], row.numbers["step, at least"]) == (
        "0.00025 of 15.8 GiB (0%)",
        "communication",
        "0.008 ms",
    )
    price = "1.2 USD a chip-hour of 2025-02, as How to Scale Your Model quotes it, not checked"
    assert (row.numbers["training, at least"], row.numbers["cost, at least"]) == (
        "0.0 s",
        f"under $0.01; {price}",
    )
    assert (found.cost.value, found.cost.note) == ("under $0.01", f"of training on v5e-8; {price}")
    assert [each["severity"] for each in found.findings] == ["! warning"] * 2 + ["- note"] * 3
    assert found.keys.startswith("--set train.device=tpu --set train.tpu=v5e-8")


def test_a_known_cost_of_the_slice_to_take_goes_to_the_head(example):
    example["slices"][0]["estimate"]["cost_usd"] = 12.345

    cost = preflight_part(example, is_own=True).cost

    assert (cost.name, cost.value) == ("cost estimate", "$12.35")
    assert cost.note == f"of training on v5e-8; {example['slices'][0]['estimate']['price']}"
    assert "not checked" in cost.note


def test_a_cost_that_was_kept_before_prices_had_words_names_the_month(example):
    example["slices"][0]["estimate"].update(cost_usd=12.345, price=None)

    cost = preflight_part(example, is_own=True).cost

    assert cost.note == f"of training on v5e-8; prices of {example['prices_of']}, not checked"


def test_where_the_length_of_the_training_or_the_price_is_not_known_no_cost_is_reported(example):
    example["slices"][0]["estimate"].update(training_s=None, cost_usd=None)

    found = preflight_part(example, is_own=False)

    assert (
        found.slices[0].numbers["training, at least"],
        found.slices[0].numbers["cost, at least"],
        found.cost,
    ) == ("", "", None)


def test_a_slice_that_was_not_compiled_has_no_numbers(example):
    example["slices"][0].update(step=None, estimate=None, can_train=False)
    example["recommended"] = None

    (row,) = preflight_part(example, is_own=True).slices

    assert (
        row.verdict,
        row.numbers["memory per device"],
        row.numbers["step, at least"],
        row.numbers["throughput, at most"],
    ) == ("? not compiled for a TPU", "", "", "")


def test_a_step_that_the_compiler_refused_without_a_number_is_not_said_to_need_nothing(example):
    example["slices"][0].update(estimate=None, can_train=False)
    example["slices"][0]["step"].update(peak_bytes=0, available_bytes=2**34)
    example["slices"][0]["findings"] = [{"severity": "error", "message": "no room", "remedy": "less"}]

    (row,) = preflight_part(example, is_own=True).slices

    assert (row.verdict, row.numbers["memory per device"]) == ("✗ cannot train", "")


def test_an_error_of_another_backend_says_nothing_about_a_slice_that_was_not_compiled(example):
    """The screen's table has "?" for it, see `SliceVerdict.trains`."""
    example["slices"][0].update(estimate=None, can_train=False)
    wrong = {
        "severity": "error",
        "rule": "backend",
        "message": "no TensorFlow",
        "remedy": "train.backend=jax",
    }
    example["slices"][0]["findings"] = [wrong]

    (row,) = preflight_part(example, is_own=True).slices

    assert row.verdict == "? not compiled for a TPU"


def test_the_runs_own_goes_before_the_last_of_the_command(example, tmp_path):
    record = History(tmp_path).new_run("taxi")
    assert preflight(record, tmp_path) is None

    keep(tmp_path, example)
    assert "by the preflight command, not by this run" in preflight(record, tmp_path).source

    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "preflight.json").write_text(json.dumps(example), encoding="utf-8")
    made = [{"uri": str(tmp_path / "own"), "type": "schemas.PreflightReport", "properties": {}}]
    record.nodes = [NodeRecord("Preflight", state="complete", outputs={"report": made})]
    assert preflight(record, tmp_path).source.endswith("by this run's Preflight")
