"""An input that is gone from the store is told from an empty one."""

import pytest

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.container.complete_inputs import record_file_counts, require_complete_inputs
from slipway.pipeline.cloud.container.kubeflow_input import FILES, RECORD

URI = "gs://b/r/examples"


@pytest.fixture
def place(tmp_path):
    return str(tmp_path)


@pytest.fixture
def folder(tmp_path):
    """The launcher's folder for the examples."""
    folder = tmp_path / "gcs/b/r/examples"
    (folder / "Split-train").mkdir(parents=True)
    (folder / "Split-eval").mkdir()
    for split in ("train", "eval"):
        (folder / f"Split-{split}/rows").touch()
    return folder


def made_by_ingest(output, place, uri=URI):
    given = {"outputs": {"artifacts": {"examples": {"artifacts": [{"uri": uri, "metadata": {}}]}}}}
    record_file_counts(output, given, place=place)
    return output


def taken(place, **metadata):
    artifact = {"name": "7", "uri": URI, "type": {}, "metadata": metadata}
    given = {"inputs": {"artifacts": {"examples": {"artifacts": [artifact]}}}, "outputs": {}}
    require_complete_inputs(given, producers={"examples": "Ingest"}, place=place)


@pytest.mark.parametrize("new", [{"metadata": {"span": 1.0}}, {"uri": URI, "metadata": {"span": 1.0}}])
def test_task_notes_how_many_files_it_leaves_beside_its_own_metadata(folder, place, new):
    output = made_by_ingest({"artifacts": {"examples": {"artifacts": [new]}}}, place)
    [examples] = output["artifacts"]["examples"]["artifacts"]
    assert examples["metadata"] == {"span": 1.0, FILES: 2.0}


def test_what_is_in_no_store_or_not_asked_for_has_no_note(place):
    output = {"artifacts": {"examples": {"artifacts": [{}]}, "more": {"artifacts": [{}]}}}
    assert made_by_ingest(output, place, uri="/here/examples") == {
        "artifacts": {"examples": {"artifacts": [{}]}, "more": {"artifacts": [{}]}}
    }


def test_artifact_that_is_a_file_itself_counts_as_one(tmp_path, place):
    (tmp_path / "gcs/b/r").mkdir(parents=True)
    (tmp_path / "gcs/b/r/examples").touch()
    output = made_by_ingest({"artifacts": {"examples": {"artifacts": [{}]}}}, place)
    assert output["artifacts"]["examples"]["artifacts"] == [{"metadata": {FILES: 1.0}}]


def test_input_that_is_whole_is_taken(folder, place):
    taken(place, **{FILES: 2.0})


@pytest.mark.parametrize("metadata", [{}, {FILES: 0.0}])
def test_input_that_was_empty_or_has_no_note_is_taken(place, metadata):
    taken(place, **metadata)


@pytest.mark.parametrize(("left", "there"), [((), 0), (("train",), 1)])
def test_input_that_is_gone_is_refused_with_whoever_makes_it_again(folder, place, left, there):
    for split in {"train", "eval"} - set(left):
        (folder / f"Split-{split}/rows").unlink()
    with pytest.raises(ComponentError) as refused:
        taken(place, **{FILES: 2.0})
    assert refused.value.message == (
        f"its input examples is gone from the store: {URI} has {there} of its 2 files; Ingest made it"
    )
    assert refused.value.hint == (
        "run Ingest again, past the cache: --set cloud.cache=false, or a new tag in cloud.image"
    )


def test_artifact_of_an_earlier_run_that_is_gone_is_refused_with_its_record(place):
    with pytest.raises(ComponentError, match=r"has 0 of its 2 files; Ingest found it") as refused:
        taken(place, **{FILES: 2.0, RECORD: "gs://b/records/taxi/tfx.Model/1.json"})
    assert refused.value.hint == (
        "delete gs://b/records/taxi/tfx.Model/1.json: the next run finds an earlier one, or none"
    )


def test_task_without_inputs_begins():
    require_complete_inputs({"outputs": {}}, producers={})
