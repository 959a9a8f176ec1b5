"""The manifest: what it covers, and that no byte of it can change unseen."""

import math
import os

import orjson
import pytest

from slipway.components.pusher import manifest as manifests
from slipway.components.pusher.manifest import FileEntry, Manifest, read_file, verify
from slipway.components.pusher.publish_to_folder import publish

PROVENANCE = {"workload": "taxi", "run": "1", "metrics": {"auc": 0.95}}


@pytest.fixture
def version(tmp_path):
    model = tmp_path / "model"
    (model / "variables").mkdir(parents=True)
    (model / "saved_model.pb").write_bytes(b"graph")
    (model / "variables/variables.index").write_bytes(b"index")
    return publish(model, base=tmp_path / "base", provenance=PROVENANCE).path


def test_version_with_provenance_has_a_card_that_its_manifest_covers(version):
    manifest = Manifest.from_bytes((version / "manifest.json").read_bytes())
    assert manifest.provenance["metrics"] == {"auc": 0.95}
    assert manifest.provenance["model"] == {"digest": manifest.model_digest}
    assert set(manifest.files) == {"saved_model.pb", "variables/variables.index", "MODEL_CARD.md"}
    assert verify(version) == ""


def test_manifest_is_json_whatever_the_metrics_are(tmp_path, version):
    """Python writes NaN and Infinity, which jq, browsers and most others refuse."""
    slices = {"overall": {"mse": 1.0}, "a=1": {"mse": math.inf, "mae": 0.5}}
    gate = {"reasons": [], "checks": [{"found": math.nan, "bounds": [0.5, math.inf]}], "overrides": []}
    given = {**PROVENANCE, "metrics": {"mse": 1.0, "auc": math.nan}, "slices": slices, "gate": gate}
    pushed = publish(version, base=tmp_path / "other", provenance=given).path
    found = orjson.loads((pushed / "manifest.json").read_bytes())
    assert found["metrics"] == {"mse": 1.0}
    assert found["slices"] == {"overall": {"mse": 1.0}, "a=1": {"mae": 0.5}}
    assert found["gate"]["checks"] == [{"bounds": [0.5, None]}]
    assert verify(pushed) == ""
    assert "inf" in (pushed / "MODEL_CARD.md").read_text(encoding="utf-8")


def test_picture_of_the_card_is_covered_and_no_part_of_the_model(tmp_path, version):
    slices = {"overall": {"auc": 0.9}, "a=1": {"auc": 0.8}}
    pictured = publish(version, base=tmp_path / "other", provenance={**PROVENANCE, "slices": slices})
    manifest = Manifest.from_bytes((pictured.path / "manifest.json").read_bytes())
    assert "metrics_by_slice.svg" in manifest.files
    assert manifest.model_digest == Manifest.from_bytes((version / "manifest.json").read_bytes()).model_digest
    assert "(metrics_by_slice.svg)" in (pictured.path / "MODEL_CARD.md").read_text(encoding="utf-8")
    again = publish(pictured.path, base=tmp_path / "other", provenance=PROVENANCE)
    assert again.was_there
    (pictured.path / "metrics_by_slice.svg").write_text("<svg/>", encoding="utf-8")
    assert verify(pictured.path) == "metrics_by_slice.svg does not match its manifest.json"


def test_flipped_bit_in_any_byte_of_any_file_is_noticed(version):
    for path in [path for path in version.rglob("*") if path.is_file()]:
        content = path.read_bytes()
        for position in range(len(content)):
            path.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
            assert verify(version) != "", (path, position)
        path.write_bytes(content)
    assert verify(version) == ""


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content + b" ",
        lambda content: content.replace(b'"run": "1"', b'"run": "2"'),
        lambda content: content.replace(b"\n", b"\r\n"),
        lambda content: content.replace(b'"run": "1"', b'"run": "0", "run": "1"'),
        lambda content: b"[" * 100_000,
        lambda content: b"",
        lambda content: b"null",
    ],
)
def test_manifest_that_was_edited_is_none(version, change):
    assert Manifest.from_bytes(change((version / "manifest.json").read_bytes())) is None


@pytest.mark.parametrize(
    ("files", "provenance"),
    [
        ({"m": FileEntry(5, 1)}, {}),
        ({"m": FileEntry("a" * 64, "1")}, {}),
        ({}, {"metrics": [0.95]}),
        ({}, {"metrics": {"auc": "high"}}),
        ({}, {"republished": [1, 2]}),
        ({}, {"pushed_at": {}}),
        ({}, {"classes": "no, yes"}),
        ({}, {"output_classes": [["no", "yes"]]}),
        ({}, {"republished": {"version": "1"}}),
        ({}, {"republished": {"version": True}}),
        ({}, {"schema": {"columns": ["fare"]}}),
        ({}, {"schema": {"columns": {"fare": 1}}}),
        ({}, {"schema": {"needed": "fare"}}),
        ({}, {"model": {"signatures": 3}}),
        ({}, {"model": {"signatures": {"serve_raw": {"inputs": ["fare"]}}}}),
        ({}, {"model": {"signatures": {"serve_raw": {"inputs": {"fare": {"shape": ["any"]}}}}}}),
    ],
)
def test_manifest_whose_values_are_of_other_types_is_none(files, provenance):
    assert Manifest.from_bytes(Manifest(files, provenance).to_bytes()) is None


@pytest.mark.parametrize(
    "more",
    [
        {"weather": [1]},
        {"schema": {"digest": "a", "weather": [1]}},
        {
            "model": {
                "signatures": {"serve_raw": {"inputs": {"fare": {"shape": [None, 1]}, "b": {"shape": None}}}}
            }
        },
        {"gate": {"reasons": 3}},
    ],
    ids=["a key", "a key within", "shapes that vary", "what no command reads"],
)
def test_keys_that_a_later_release_adds_are_kept(more):
    provenance = {**PROVENANCE, **more}
    assert Manifest.from_bytes(Manifest({}, provenance).to_bytes()).provenance == provenance


def test_pipe_or_folder_in_the_place_of_a_manifest_is_none_at_once(version):
    for make in (os.mkfifo, os.mkdir):
        (version / "manifest.json").unlink()
        make(version / "manifest.json")
        assert verify(version) == "it has no readable manifest.json"
        (version / "manifest.json").rename(version / f"{make.__name__}.was")
        (version / "manifest.json").touch()


def test_file_too_long_for_a_manifest_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(manifests, "MOST_BYTES", 10)
    (tmp_path / "long").write_bytes(b"a" * 11)
    (tmp_path / "short").write_bytes(b"a" * 10)
    assert (read_file(tmp_path / "long"), read_file(tmp_path / "short")) == (None, b"a" * 10)


def test_model_digest_does_not_depend_on_the_provenance():
    entry = FileEntry("a" * 64, 1)
    card = {"MODEL_CARD.md": FileEntry("b" * 64, 2)}
    assert Manifest({"m": entry}).model_digest == Manifest({"m": entry, **card}, PROVENANCE).model_digest
