"""The command `baseline`."""

from slipway.pipeline.commands.baseline import baseline
from slipway.pipeline.config import WorkloadChoice
from slipway.pipeline.plan import baseline_changes
from slipway.pipeline.runs.history import History


def test_a_profile_names_the_workload_and_the_store_whose_baseline_it_is(project, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        baseline_changes, "clear_baseline", lambda config, output, *, reason: asked.append(config.metadata)
    )
    text = (project / "workloads/taxi/workload.yaml").read_text(encoding="utf-8").rstrip()
    assert text.rpartition("\n")[2] == "  prod: {}"  # the last of its profiles
    file = tmp_path / "workload.yaml"
    store = "metadata: {type: mysql, host: db.example, database: d, user: u}"
    file.write_text(f"{text}\n  server: {{{store}}}\n", encoding="utf-8")
    baseline(WorkloadChoice(file), tmp_path, clear=True)
    baseline(WorkloadChoice(file, profile="server"), tmp_path, clear=True)
    assert [each and each.type for each in asked] == [None, "mysql"]


def test_a_record_that_cannot_be_read_is_told_as_it_may_be_of_a_later_model(project, tmp_path, capsys):
    workload = WorkloadChoice(project / "workloads/taxi/workload.yaml")
    assert baseline(workload, tmp_path).run is None
    assert capsys.readouterr().err == ""
    record = History(tmp_path).new_run("taxi")
    (record.folder / "run.json").write_text("{", encoding="utf-8")
    assert baseline(workload, tmp_path).run is None
    assert f"{record.run_id}/run.json cannot be read" in capsys.readouterr().err
