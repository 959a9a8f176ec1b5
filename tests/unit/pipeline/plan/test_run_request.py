"""What a run is asked to do."""

import importlib.util
import json
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hub_double import TOKEN

from slipway.components import google_credentials
from slipway.components.errors import ComponentError
from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.config import WorkloadChoice, read_assignments
from slipway.pipeline.errors import ConfigError, DataSourceError, UsageError
from slipway.pipeline.plan.run_request import Request, again, pipeline_request, workload_request
from slipway.pipeline.runs.record import WHY, RunRecord
from slipway.pipeline.runs.run_target import Source
from slipway.pipeline.runs.typed_json import DocumentError


@pytest.fixture
def request_for(project, tmp_path):
    """A request to run the taxi workload, with overrides."""

    def call(**overrides):
        chosen = WorkloadChoice(project / "workloads/taxi/workload.yaml")
        return workload_request(chosen, output=tmp_path, beam_args=(), overrides=overrides)

    return call


def recorded(asked, output):
    """The run's record, as it is read back."""
    record = RunRecord.from_json({"run_id": "r", "workload": "taxi", "target": json.loads(json.dumps(asked))})
    record.output = output
    return record


def test_override_travels_with_its_reason_and_survives_a_resume(request_for, tmp_path):
    made = request_for(accept_data=" seen with the owner ")
    assert made.overrides == {"accept_data": "seen with the owner"}
    assert made.target.overrides == made.overrides
    resumed = again(recorded(made.recorded.to_json(), tmp_path), jobs=None)
    assert (resumed.overrides, resumed.target) == (made.overrides, made.target)


def test_workload_that_was_renamed_is_gone_on_with_under_its_new_name(project, tmp_path):
    """The lock of its pushes has that name."""
    file = tmp_path / "workload.yaml"
    text = (project / "workloads/taxi/workload.yaml").read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")
    made = workload_request(WorkloadChoice(file), output=tmp_path, beam_args=())
    file.write_text(text.replace("name: taxi", "name: cabs", 1), encoding="utf-8")
    assert again(recorded(made.recorded.to_json(), tmp_path), jobs=None).workload == "cabs"


def test_only_the_files_of_the_latest_span_are_looked_at_where_no_span_is_named(project, tmp_path):
    first, last = (tmp_path / f"2026-11-{day}.csv" for day in (20, 21))
    first.write_text("a\n")
    source = Path(importlib.util.find_spec("tfx").origin).parent
    head = (source / "examples/chicago_taxi_pipeline/data/simple/data.csv").read_text().splitlines()[:2]
    last.write_text("\n".join([*head, ""]))
    sets = [f"data.source={tmp_path}/{{YYYY}}-{{MM}}-{{DD}}.csv"]

    def asked(*more):
        chosen = WorkloadChoice(project / "workloads/taxi/workload.yaml", read_assignments([*sets, *more]))
        return workload_request(chosen, output=tmp_path, beam_args=())

    asked()
    with pytest.raises(DataSourceError, match=r"2026-11-20\.csv"):
        asked("data.span=2026-11-20")
    last.write_text(f"{head[0]}\n")
    with pytest.raises(DataSourceError, match=r"2026-11-21\.csv has a header but no rows"):
        asked()


def test_all_files_are_looked_at_where_only_one_split_has_spans(project, tmp_path):
    for name in ("train-1.csv", "train-2.csv", "eval.csv"):
        (tmp_path / name).write_text("a\n")
    sets = [f"data.source={tmp_path}", "data.split_by={files: {train: 'train-{SPAN}.csv', eval: eval.csv}}"]
    chosen = WorkloadChoice(project / "workloads/taxi/workload.yaml", read_assignments(sets))
    with pytest.raises(DataSourceError, match=r"train-1\.csv"):
        workload_request(chosen, output=tmp_path, beam_args=())


def test_missing_data_that_a_script_of_the_workload_makes_come_with_its_commands():
    chosen = WorkloadChoice(Path("reviews"), profile="full")
    if (PROJECT_ROOT / "workloads/reviews/reviews.jsonl.bz2").exists():
        pytest.skip("somebody has made them")
    with pytest.raises(ConfigError, match=r"reviews\.jsonl\.bz2 does not exist") as refused:
        workload_request(chosen, output=Path("output"), beam_args=())
    assert refused.value.hint == (
        "pip download --no-deps --no-binary :all: vaderSentiment==3.3.2 && "
        "python -m workloads.reviews.make_data vaderSentiment-3.3.2.tar.gz   "
        "# see workloads/reviews/make_data.py"
    )


def test_rows_of_a_query_are_the_files_of_the_run(project, tmp_path):
    pytest.importorskip("duckdb")
    files = "package://tfx/examples/chicago_taxi_pipeline/data/simple/data.csv"
    sets = ["data.format=sql", "data.source=null", f"data.tables={{trips: {{files: '{files}'}}}}"]
    chosen = WorkloadChoice(project / "workloads/taxi/workload.yaml", read_assignments(sets))
    source = workload_request(chosen, output=tmp_path, beam_args=()).target.source
    assert Path(source.directory).parent == tmp_path / "queries/taxi"
    assert source.patterns == {"all": "part-*.parquet"}
    wrong = replace(chosen, sets=read_assignments([*sets, "data.query=SELECT tip FROM trips"]))
    with pytest.raises(ConfigError, match='Referenced column "tip" not found'):
        workload_request(wrong, output=tmp_path, beam_args=())


def test_override_makes_another_graph_and_none_makes_the_same(request_for):
    assert request_for().target == request_for().target
    assert request_for().target != request_for(bless="urgent").target


@pytest.mark.parametrize("reason", ["", "  "])
def test_override_without_a_reason_is_refused(request_for, reason):
    with pytest.raises(UsageError, match="--bless needs a reason"):
        request_for(bless=reason)


@pytest.mark.parametrize("reason", [WHY, f" {WHY.capitalize()}\n"])
def test_the_words_that_stand_for_the_reason_in_a_hint_are_none(request_for, reason):
    with pytest.raises(
        UsageError, match=r"(?i)--accept-data .*why it is right.* is a placeholder"
    ) as refused:
        request_for(accept_data=reason)
    assert refused.value.hint == 'write it, as --accept-data "checked with the data\'s owner on Monday"'


def test_request_recorded_before_there_were_overrides_is_read(request_for, tmp_path):
    data = request_for().recorded.to_json()
    del data["overrides"], data["target"]["overrides"]
    assert Request.of(recorded(data, tmp_path)) == request_for()


BY_TIME = "{time: trip_start_timestamp, starts: {train: null, eval: 9}}"


@pytest.mark.parametrize(
    ("setting", "key"),
    [
        ("data.columns=[tips, far]", "data.columns"),
        ("data.types={far: text}", "data.types"),
        ("data.numbers={far: {thousands: ','}}", "data.numbers"),
        ("data.dates={far: '%d.%m.%Y'}", "data.dates"),
        ("data.split_by={key: far}", "data.split_by.key"),
        ("evaluate.slices=[[payment_type], [far]]", "evaluate.slices"),
        (f"transform.group=far && data.split_by={BY_TIME}", "transform.group"),
        ("data_gate.freshness={column: far}", "data_gate.freshness.column"),
        ("data_gate.features={far: {max_label_score: 1}}", "data_gate.features"),
    ],
)
def test_a_name_that_no_column_has_is_refused_with_the_nearest(project, tmp_path, setting, key):
    path = project / "workloads/taxi/workload.yaml"
    sets = read_assignments(setting.split(" && "))
    with pytest.raises(ConfigError) as refused:
        workload_request(WorkloadChoice(path, sets), output=tmp_path, beam_args=())
    assert refused.value.message == f"{key}: 'far' is not a column of the data; nearest: fare"
    assert "trip_miles" in refused.value.hint


def test_line_break_in_the_name_of_a_column_begins_no_line(project, tmp_path):
    (tmp_path / "a.csv").write_text('"fare\nhint: do",tips\n1,2\n', encoding="utf-8")
    sets = read_assignments([f"data.source={tmp_path}/a.csv", "data.columns=[tips, far]"])
    with pytest.raises(ConfigError) as refused:
        workload_request(
            WorkloadChoice(project / "workloads/taxi/workload.yaml", sets), output=tmp_path, beam_args=()
        )
    assert "\n" not in refused.value.message + refused.value.hint


@pytest.mark.parametrize(
    "setting",
    [
        "evaluate.slices=[[payment_type], [big_tip]]",  # preprocessing_fn returns it
        "evaluate.slices=[[payment_type], [fare_range]] && transform.pass_through=[fare_range]",
    ],
)
def test_slices_may_be_by_what_preprocessing_makes(project, tmp_path, setting):
    choice = WorkloadChoice(project / "workloads/taxi/workload.yaml", read_assignments(setting.split(" && ")))
    assert workload_request(choice, output=tmp_path, beam_args=()).workload == "taxi"


@pytest.mark.parametrize("name", [".venv-nope/bin/python", "no-such-python"])
def test_an_interpreter_that_is_not_there_is_refused_before_the_run(project, tmp_path, name):
    def asked(*sets, **options):
        choice = WorkloadChoice(project / "workloads/taxi/workload.yaml", read_assignments(sets))
        return workload_request(choice, output=tmp_path, beam_args=(), **options)

    with pytest.raises(ConfigError, match=f"train.interpreter \\('{name}'\\) is not an executable program"):
        asked(f"train.interpreter={name}").check_interpreter()
    asked().check_interpreter()
    asked(f"train.interpreter={sys.executable}").check_interpreter()


@pytest.mark.parametrize(
    ("options", "trains"),
    [({}, True), ({"end": "Pusher"}, True), ({"end": "Transform"}, False), ({"start": "Evaluator"}, False)],
)
def test_a_run_that_ends_before_the_training_or_begins_after_it_trains_nothing(
    project, tmp_path, options, trains
):
    choice = WorkloadChoice(project / "workloads/taxi/workload.yaml")
    assert workload_request(choice, output=tmp_path, beam_args=(), **options).trains == trains


@pytest.fixture
def pushing_to(project, tmp_path):
    """A request to run the taxi workload, its models pushed to a place."""

    def call(place, end=None):
        path, sets = project / "workloads/taxi/workload.yaml", [f"push.destination={place}"]
        return workload_request(
            WorkloadChoice(path, read_assignments(sets)), output=tmp_path, beam_args=(), end=end
        )

    return call


def test_a_place_that_takes_no_version_is_refused_before_the_training(pushing_to, tmp_path):
    (tmp_path / "file").touch()
    place = tmp_path / "file/models"
    with pytest.raises(ConfigError) as refused:
        pushing_to(place).check_destination()
    assert refused.value.message == (
        f"push.destination = {place}: no version can be written there; {tmp_path / 'file'} is not a directory"
    )
    assert "--set push.destination=DIRECTORY" in refused.value.hint


def test_a_run_that_ends_before_the_push_needs_no_place_for_it(pushing_to, tmp_path):
    (tmp_path / "file").touch()
    pushing_to(tmp_path / "file", end="Trainer").check_destination()
    with pytest.raises(ConfigError):
        pushing_to(tmp_path / "file", end="Pusher").check_destination()


def test_the_output_folder_is_not_looked_at(pushing_to):
    pushing_to("null").check_destination()


def test_the_look_at_a_place_leaves_nothing_there(pushing_to, tmp_path):
    pushing_to(tmp_path / "srv/models").check_destination()
    assert list(tmp_path.iterdir()) == []


def test_a_key_that_cannot_sign_is_refused_before_the_training(project, tmp_path, key_files):
    def request(key):
        path, sets = project / "workloads/taxi/workload.yaml", [f"push.sign.key={key}"]
        return workload_request(WorkloadChoice(path, read_assignments(sets)), output=tmp_path, beam_args=())

    private, public = key_files()
    request(private).check_destination()
    with pytest.raises(UsageError, match="holds a public key; to sign, the private one is needed"):
        request(public).check_destination()


@pytest.fixture
def credentials(monkeypatch):
    """How often credentials were asked for; there are none."""
    asked = []

    def find(what):
        asked.append(what)
        raise ComponentError("There are no credentials.", hint="log in")

    monkeypatch.setattr(google_credentials, "find_credentials", find)
    return asked


@pytest.mark.parametrize(("end", "is_asked"), [(None, True), ("Pusher", True), ("Transform", False)])
def test_credentials_for_an_endpoint_are_asked_for_where_the_run_comes_to_it(
    project, tmp_path, credentials, end, is_asked
):
    path = project / "workloads/taxi/workload.yaml"
    sets = ["push.endpoint={name: taxi, container: image}", "push.destination=gs://bucket/models"]
    sets += ["cloud.vertex={project: my-project, region: europe-west4}", "cloud.root=gs://bucket/root"]
    made = workload_request(
        WorkloadChoice(path, read_assignments(sets)), output=tmp_path, beam_args=(), end=end
    )
    with pytest.raises(UsageError, match="no credentials") if is_asked else nullcontext():
        made.check_destination()
    assert credentials == ["push.endpoint"] * is_asked


@pytest.mark.parametrize("variable", [None, "postgresql://me:word@localhost/store"])
def test_results_are_looked_up_in_the_store_that_the_pipeline_names(
    request_for, tmp_path, monkeypatch, variable
):
    if variable:
        monkeypatch.setenv("SLIPWAY_METADATA_URL", variable)
    own = pipeline_request("my:pipeline", parameters={}, output=tmp_path, beam_args=())
    assert own.store_file("/elsewhere/store.db") == Path("/elsewhere/store.db")
    assert own.store_file("") is None
    assert request_for().store_file("") == (None if variable else tmp_path / "metadata.db")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"output": 7}, "target.output is 7, where text belongs"),
        ({"nodes": [1]}, "target.nodes is [1], where a mapping belongs"),
        ({"nodes": {"A": {"retries": "x"}}}, 'target.nodes.A.retries is "x", where a whole number belongs'),
        ({"target": {"config": 1}}, "target.target.config is 1, where text belongs"),
    ],
)
def test_record_that_does_not_say_what_was_run_is_refused_in_words(request_for, tmp_path, change, words):
    with pytest.raises(DocumentError) as refused:
        recorded({**request_for().recorded.to_json(), **change}, tmp_path)
    assert refused.value.message == words


@pytest.mark.parametrize("asked", [{}, {"target": {"of a later version": 1}}])
def test_run_of_which_nobody_knows_what_it_was_is_not_gone_on_with(tmp_path, asked):
    with pytest.raises(UsageError, match="The record of run r does not say what was run"):
        again(recorded(asked, tmp_path), jobs=None)


def test_source_on_the_hub_is_pinned_and_the_commit_is_in_the_record(hub, project, tmp_path, monkeypatch):
    commit = hub.commit("o/n", {"trips.csv": b"tips\n1\n"})
    sets = read_assignments(["data.source=hf://datasets/o/n/trips.csv"])
    chosen = WorkloadChoice(project / "workloads/taxi/workload.yaml", sets)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    asked = workload_request(chosen, output=tmp_path, beam_args=())
    kept = json.dumps(asked.recorded.to_json())
    assert asked.target.source == Source(f"hf://datasets/o/n@{commit}", {"all": "trips.csv"})
    assert f"hf://datasets/o/n@{commit}" in kept
    assert TOKEN not in kept


def test_data_set_that_the_hub_does_not_have_is_an_error_of_the_data(hub, project, tmp_path):
    sets = read_assignments(["data.source=hf://datasets/o/none/trips.csv"])
    chosen = WorkloadChoice(project / "workloads/taxi/workload.yaml", sets)
    with pytest.raises(DataSourceError, match="hf://datasets/o/none: there is no such data set"):
        workload_request(chosen, output=tmp_path, beam_args=())


@pytest.mark.parametrize("jobs", [-1, 0, 1.5, True])
def test_a_number_of_jobs_with_which_no_node_would_start_is_refused(tmp_path, jobs):
    """scikit-learn's -1 for all cores: the run was complete without a node."""
    with pytest.raises(UsageError, match=f"^jobs is {jobs}; it must be a whole number of nodes, at least 1"):
        pipeline_request("module:function", parameters={}, output=tmp_path, beam_args=[], jobs=jobs)


def test_whole_numbers_of_numpy_are_numbers_of_jobs(tmp_path):
    asked = pipeline_request(
        "module:function", parameters={}, output=tmp_path, beam_args=[], jobs=np.int64(2)
    )
    assert type(asked.jobs) is int
    assert asked.jobs == 2
