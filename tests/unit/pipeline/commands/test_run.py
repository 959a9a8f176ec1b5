"""What `run` and `plan` say before they begin."""

from slipway.pipeline.commands.run import moved_lines
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord


def test_a_moved_output_folder_is_reported_once_with_the_link_that_keeps_its_results(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new one"
    place = old / "artifacts/taxi/Trainer/model/7"
    place.mkdir(parents=True)
    history = History(old)
    record = history.new_run("taxi", run_id="20261120-000000-0001")
    made = {"uri": str(place), "type": "Model", "properties": {}}
    record.nodes = [NodeRecord("Trainer", "Trainer", state="complete", outputs={"model": [made]})]
    history.save(record)
    assert moved_lines("taxi", old) == []
    old.rename(new)
    told, hint = moved_lines("taxi", new)
    assert told.startswith(f"{new} was moved here from {old}, where ML Metadata looks")
    assert hint == f"hint: ln -s '{new}' {old}"
    assert moved_lines("digits", new) == []
    old.symlink_to(new)
    assert moved_lines("taxi", new) == []
