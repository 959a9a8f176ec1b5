"""What a run was asked to do: the same after JSON, in the form that records had before there were types."""

import json
from pathlib import Path

import pytest

from slipway.pipeline.runs.run_target import (
    NOTHING,
    ImageModuleRun,
    ImageRun,
    IrRun,
    KeptNotify,
    KeptSettings,
    ModuleRun,
    NodeLimits,
    Order,
    Origin,
    RecordedRequest,
    Source,
    WorkloadRun,
)
from slipway.pipeline.runs.typed_json import DocumentError, plain, typed

OUTPUT = Path("/data/output")
TARGETS = [
    WorkloadRun(config="{}", source=Source("/data", {"all": "*.csv"}), output=OUTPUT, today="2026-11-23"),
    ModuleRun(pipeline="mine:make", folder="/mine", output=OUTPUT),
    IrRun(ir=True, import_from=("/mine",), output=OUTPUT, module_files={"Trainer": "/mine/model.py"}),
    ImageRun(config="{}", source=("/app/data", {"all": "*.csv"}), image="i:1", root="gs://b/root"),
    ImageModuleRun(pipeline="mine:make", output=OUTPUT, parameters={"a": "1"}, image="i:1", serving="/s"),
]
OPTIONS = {
    "workload": "taxi",
    "output": OUTPUT,
    "nodes": {"Trainer": NodeLimits(retries=1, timeout_s=60.0)},
    "parameters": {"a": "1"},
    "beam_args": ("--runner=FlinkRunner",),
    "origin": Origin("/taxi/workload.yaml", ("train.epochs=1",), "dev"),
    "overrides": {"bless": "urgent"},
    "start": "Trainer",
    "jobs": 2,
}


def through_json(kind, document):
    return typed(kind, json.loads(json.dumps(document)))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: type(target).__name__)
def test_target_is_the_same_in_a_record_and_on_the_way_to_the_process_that_compiles_it(target):
    order = Order(target=target, run_id="r", folder=OUTPUT / "runs/r", beam_args=("--a=1",))
    assert through_json(Order, plain(order)) == order
    again = "python cloud_runner.py rehearse taxi"
    is_rehearsed = isinstance(target, (ImageRun, ImageModuleRun))
    options = {"again": again, "output": OUTPUT} if is_rehearsed else OPTIONS
    asked = RecordedRequest(target=target, **options)
    assert through_json(RecordedRequest, asked.to_json()) == asked


def test_record_of_a_local_run_is_written_with_the_keys_that_it_always_had():
    document = RecordedRequest(target=TARGETS[0], **OPTIONS).to_json()
    assert list(document) == [
        "workload", "target", "output", "nodes", "parameters", "beam_args", "origin", "overrides", "start",
        "end", "no_cache", "jobs", "fail_fast",
    ]  # fmt: skip
    assert document["nodes"] == {"Trainer": {"retries": 1, "timeout_s": 60.0, "backoff_s": 1.0}}
    assert document["target"]["source"] == {"directory": "/data", "patterns": {"all": "*.csv"}}


def test_record_of_a_rehearsal_holds_its_target_beside_the_command_that_repeats_it():
    document = RecordedRequest(target=TARGETS[3], output=OUTPUT, again="rehearse").to_json()
    assert document == {
        "config": "{}",
        "overrides": {},
        "source": ["/app/data", {"all": "*.csv"}],
        "image": "i:1",
        "root": "gs://b/root",
        "service": "vertex",
        "containers": "",
        "container_image": "",
        "container_user": 0,
        "output": "/data/output",
        "again": "rehearse",
    }


def test_nothing_was_asked_of_a_rollback():
    assert NOTHING.to_json() == {}
    assert typed(RecordedRequest, {}) == NOTHING == NOTHING.with_output(OUTPUT)


def test_kind_of_target_that_a_later_version_wrote_leaves_the_rest_of_the_record_readable():
    found = typed(RecordedRequest, {"workload": "taxi", "target": {"bazel": "//taxi"}, "end": "Trainer"})
    assert found == RecordedRequest(workload="taxi", end="Trainer")


def test_damaged_target_is_refused_by_its_key():
    with pytest.raises(DocumentError, match=r"^target\.folder is 7, where text belongs$"):
        typed(RecordedRequest, {"target": {"pipeline": "mine:make", "folder": 7}})


def test_moved_output_folder_is_taken_by_the_target_too():
    moved = RecordedRequest(target=TARGETS[1], **OPTIONS).with_output(Path("/moved"))
    assert (moved.output, moved.target.output) == (Path("/moved"), Path("/moved"))


def test_settings_of_another_version_are_read_as_far_as_a_record_needs_them():
    settings = {
        "schema": "taxi.pbtxt",
        "gone": {"key": 1},
        "transform": {"classes": ["a"], "label": "tips"},
        "notify": {"when": ["failed"], "command": ["mail"]},
    }
    kept = RecordedRequest(target=WorkloadRun(config=json.dumps(settings))).settings
    assert kept == KeptSettings(
        schema="taxi.pbtxt", transform=kept.transform, notify=KeptNotify(("failed",), ("mail",))
    )
    assert kept.transform.classes == ("a",)
    heads = {"transform": {"classes": {"tip": ["a", "b"]}, "label": {"tip": "tips", "cost": "fare"}}}
    several = RecordedRequest(target=WorkloadRun(config=json.dumps(heads))).settings
    assert several.transform.classes == {"tip": ("a", "b")}
    assert RecordedRequest(target=TARGETS[1]).settings is None
    with pytest.raises(DocumentError, match="not JSON"):
        _ = WorkloadRun(config="{").kept


@pytest.mark.parametrize(
    ("target", "folders"), [(TARGETS[0], ()), (TARGETS[1], ("/mine",)), (TARGETS[2], ("/mine",))]
)
def test_modules_of_the_users_own_are_imported_from_the_folders_that_the_target_names(target, folders):
    assert target.import_from == folders
