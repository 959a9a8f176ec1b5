"""What the trials of a sweep share."""

from taxi_workload import taxi_workload

from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import NodeRecord
from slipway.pipeline.runs.typed_json import plain
from slipway.pipeline.sweep.basis import CODE, basis, changed, changed_since, data_of, in_project


def basis_of(*sets):
    return plain(basis(taxi_workload(*sets)))


def test_what_decides_about_a_metric_is_named_by_its_key_and_the_rest_is_left_out():
    before = basis_of()
    assert {"workloads/taxi/model.py", "workloads/taxi/preprocessing.py"} <= before[CODE].keys()
    now = basis_of("train.epochs=77", "description=x", "push.keep=3", "statistics.sample_rate=0.5")
    assert list(changed(before, now)) == ["statistics.sample_rate", "train.epochs"]


def test_a_key_that_is_gone_or_new_has_changed():
    assert list(changed({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 1}, "e": 4})) == ["a.c", "d", "e"]


def test_the_data_is_what_the_first_nodes_read(tmp_path):
    history = History(tmp_path)

    def read(data, named):
        record = history.new_run("taxi")
        record.nodes = [NodeRecord("Ingest"), NodeRecord("Trainer", upstream=["Ingest"])]
        prints = {"Ingest": {"data:trips.csv": data}, "Trainer": {"data:words/en.txt": named}}
        history.save_fingerprints(record.run_id, {name: Fingerprint(each) for name, each in prints.items()})
        return data_of(record)

    assert read("1", "a") == read("1", "b") != read("2", "a")
    assert data_of(history.new_run("taxi")) == ""


def test_a_setting_that_an_earlier_release_did_not_have_has_not_changed_while_it_has_its_default():
    before = basis_of()
    del before["train"]["checkpoint"]["keep"], before["evaluate"]["serving"]["max_load_s"]
    assert changed_since(before, taxi_workload()) == []
    assert changed_since(before, taxi_workload("train.checkpoint.keep=7")) == ["train.checkpoint.keep"]


def test_a_hyperparameter_or_a_module_that_is_new_has_changed():
    before = basis_of()
    del before[CODE]["workloads/taxi/model.py"]
    given = taxi_workload("train.hyperparameters.learning_rate=0.5")
    assert changed_since(before, given) == [
        "code.workloads/taxi/model.py",
        "train.hyperparameters.learning_rate",
    ]


def test_a_path_in_the_project_is_the_same_wherever_the_project_lies():
    schema = PROJECT_ROOT / "schemas/taxi.pbtxt"
    assert (in_project(str(schema)), in_project("/elsewhere/x")) == ("schemas/taxi.pbtxt", "/elsewhere/x")
    before = basis_of()
    config = taxi_workload().model_copy(update={"schema_path": str(schema)})
    assert basis(config)["schema"] == "schemas/taxi.pbtxt"
    of_earlier_release = {**before, "schema": str(schema)}
    assert changed_since(of_earlier_release, config) == []
