"""Where a model comes from: what is gathered, and what may be missing."""

import json
import math

import pytest

from slipway.components.pusher.manifest import FileEntry, Manifest
from slipway.components.pusher.model_registry import describe
from slipway.components.pusher.provenance import (
    collect_provenance,
    read_code,
    read_data,
    read_exports,
    read_sbom,
    read_schema,
    read_verdict,
)
from slipway.components.pusher.version_files import sealed


def test_provenance_leaves_out_what_is_unknown(monkeypatch):
    monkeypatch.delenv("SLIPWAY_RUN", raising=False)
    provenance = collect_provenance(about={}, verdict={}, data_verdict={}, data={}, schema={}, signatures={})
    assert set(provenance) == {"pushed_at", "model", "code", "gate", "stack"}
    assert set(provenance["code"]) == {"slipway.components"}


@pytest.mark.parametrize(
    "named", [{"classes": ["no", "yes"]}, {"output_classes": {"tip": ["no", "yes"]}}], ids=["one", "several"]
)
def test_names_of_classes_are_those_of_the_workload(named):
    found = collect_provenance(about=named, verdict={}, data_verdict={}, data={}, schema={}, signatures={})
    assert {key: each for key, each in found.items() if "classes" in key} == named


def provenance_with(data_verdict):
    return collect_provenance(
        about={"source": "trips.csv"},
        verdict={},
        data_verdict=data_verdict,
        data={"rows_in": 3},
        schema={},
        signatures={},
    )


def test_what_the_data_gate_found_is_reported_with_the_reason_that_let_it_pass():
    finding = {"text": "fare (train): missing in 9% of the rows; limit 1%", "stops": True}
    verdict = {"message": "1 finding in 3 rows", "accepted": "the city told us", "findings": [finding]}
    provenance = provenance_with(verdict)
    assert provenance["data"] == {"source": "trips.csv", "rows_in": 3}
    assert provenance["data_gate"] == {
        "message": "1 finding in 3 rows",
        "findings": ["fare (train): missing in 9% of the rows; limit 1%"],
        "overrides": [{"reason": "the city told us"}],
    }


def test_reason_that_was_not_needed_is_no_override():
    verdict = {
        "message": "1 finding",
        "accepted": "in case",
        "findings": [{"text": "worth knowing", "stops": False}],
    }
    assert provenance_with(verdict)["data_gate"]["overrides"] == []
    assert "data_gate" not in provenance_with({})


def test_columns_of_dates_are_those_that_the_data_gate_found():
    assert provenance_with({"message": "nothing found", "dates": ["day"]})["schema"] == {"dates": ["day"]}


def test_data_and_verdict_are_read_from_what_ingest_and_the_gate_left(tmp_path):
    summary = {"digest": "d", "rows_in": 3, "rows_out": {"train": 2}, "rejected": {"bad": 1}, "files": ["x"]}
    summary["units"] = {"wait": "ms"}
    (tmp_path / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    (tmp_path / "verdict.json").write_text(json.dumps({"metrics": {"auc": 1}}), encoding="utf-8")
    assert read_data(tmp_path, span="4") == {
        "digest": "d",
        "rows_in": 3,
        "rows_out": {"train": 2},
        "rejected": {"bad": 1},
        "units": {"wait": "ms"},
        "span": "4",
    }
    assert read_verdict(tmp_path) == {"metrics": {"auc": 1}}


def test_files_that_are_missing_or_damaged_say_nothing(tmp_path):
    for damaged in ("[1", "[" * 100_000):
        (tmp_path / "verdict.json").write_text(damaged, encoding="utf-8")
        assert read_verdict(tmp_path) == {}
    assert read_data(tmp_path, span=None) == {}


def test_schema_is_known_by_its_digest_and_its_columns(project, tmp_path):
    found = read_schema(project / "schemas/taxi.pbtxt")
    assert len(found["digest"]) == 64
    assert (found["columns"]["fare"], found["columns"]["company"]) == ("FLOAT", "BYTES")
    (tmp_path / "schema.pbtxt").write_text("feature {", encoding="utf-8")
    assert read_schema(tmp_path / "schema.pbtxt") == read_schema(tmp_path / "none") == {}


def test_code_is_that_of_the_training_and_what_it_did_not_know_that_of_now(tmp_path):
    kept = {"slipway.components": "as trained", "workloads.taxi": "as trained"}
    (tmp_path / "code.json").write_text(json.dumps({**kept, "odd": 1}), encoding="utf-8")
    about = {"model": "workloads.taxi.model.build_model", "preprocessing_fn": "workloads.fares.transform.f"}
    found = collect_provenance(
        about=about,
        verdict={},
        data_verdict={},
        data={},
        schema={},
        signatures={},
        code=read_code(tmp_path),
    )["code"]
    assert len(found.pop("workloads.fares")) == 64
    assert found == kept
    assert read_code(tmp_path / "none") == {}


def test_smaller_forms_are_read_from_beside_the_model(tmp_path):
    report = {"rows": 3, "exports": [{"kind": "litert"}]}
    (tmp_path / "exports.json").write_text(json.dumps(report), encoding="utf-8")
    provenance = collect_provenance(
        about={"pretrained": {"path": "w.h5", "sha256": "ab"}},
        verdict={},
        data_verdict={},
        data={},
        schema={},
        signatures={},
        exports=read_exports(tmp_path),
    )
    assert provenance["exports"] == report
    assert provenance["pretrained"] == {"path": "w.h5", "sha256": "ab"}
    assert read_exports(tmp_path / "none") == {}


def test_list_of_the_software_is_taken_as_it_is_or_not_at_all(tmp_path):
    assert read_sbom(tmp_path) is None
    file = tmp_path / "sbom.cdx.json"
    for content in (b"", b"[]", b"{}", b"\xff", b"[" * 100_000):
        file.write_bytes(content)
        assert read_sbom(tmp_path) is None
    file.write_bytes(b'{"bomFormat":  "CycloneDX"}')
    assert read_sbom(tmp_path) == b'{"bomFormat":  "CycloneDX"}'


def test_a_manifest_is_json_whatever_a_metric_is():
    check = {"metric": "mae", "got": math.inf, "required": "at most 3"}
    verdict = {
        "metrics": {"mae": math.inf, "auc": 0.5},
        "slices": {"overall": {"mae": math.inf, "auc": 0.5}, "cash": {"mae": math.nan}},
        "checks": [check],
    }
    provenance = collect_provenance(
        about={}, verdict=verdict, data_verdict={}, data={}, schema={}, signatures={}
    )
    content = Manifest({}, provenance).to_bytes()
    read = json.loads(content, parse_constant=lambda constant: pytest.fail(constant))
    assert (read["metrics"], read["slices"]) == ({"auc": 0.5}, {"overall": {"auc": 0.5}})
    assert read["gate"]["checks"] == [{**check, "got": None}]
    assert Manifest.from_bytes(content) is not None


def test_data_gate_without_a_message_is_known_by_its_findings():
    gate = {"message": None, "findings": [{"text": "drift", "stops": True}], "accepted": "checked by hand"}
    found, none = (
        collect_provenance(about={}, verdict={}, data_verdict=each, data={}, schema={}, signatures={})
        for each in (gate, {"message": None})
    )
    assert found["data_gate"] == {
        "message": "",
        "findings": ["drift"],
        "overrides": [{"reason": "checked by hand"}],
    }
    assert "data_gate" not in none


@pytest.mark.parametrize(
    "verdict",
    [
        {"metrics": {"auc": "high", "loss": 0.5, "rows": 3, "best": True, "none": None, "list": [1]}},
        {"metrics": ["auc"], "baseline_metrics": 3, "slices": [1]},
        {"baseline_metrics": {"auc": "x"}, "slices": {"a": {"auc": "x", "loss": 0.5}, "b": 1, "c": {}}},
        {"reasons": "none", "checks": {"a": 1}, "overrides": 7},
    ],
)
def test_verdict_of_a_gate_of_one_s_own_spoils_no_manifest(verdict):
    found = collect_provenance(
        about={},
        verdict=verdict,
        data_verdict={"message": 5, "findings": 7},
        data={},
        schema={},
        signatures={},
    )
    manifest = Manifest.from_bytes(sealed({"saved_model.pb": FileEntry("0" * 64, 1)}, found)["manifest.json"])
    assert manifest is not None
    assert manifest.provenance["gate"].keys() == {"reasons", "checks", "overrides"}
    assert set(found.get("metrics", {})) <= {"loss", "rows"}
    assert found.get("slices", {}) in ({}, {"a": {"loss": 0.5}})
    assert describe(found).partition(",")[0] in ("", "loss 0.5")


@pytest.mark.parametrize("number", ["1" + "0" * 400, "9" * 5000, "1e400", "NaN"])
def test_number_beyond_floats_in_a_verdict_of_ones_own_is_left_out(tmp_path, number):
    text = f'{{"metrics": {{"auc": {number}, "mae": 1}}, "checks": [{{"got": {number}}}]}}'
    (tmp_path / "verdict.json").write_text(text, encoding="utf-8")
    verdict = read_verdict(tmp_path)
    provenance = collect_provenance(
        about={}, verdict=verdict, data_verdict={}, data={}, schema={}, signatures={}
    )
    assert provenance["metrics"] == {"mae": 1}
    assert provenance["gate"]["checks"] == [{"got": None}]


def test_verdict_that_is_nested_too_deeply_is_none_that_can_be_read(tmp_path):
    (tmp_path / "verdict.json").write_text("[" * 100_000 + "]" * 100_000, encoding="utf-8")
    assert read_verdict(tmp_path) == {}
