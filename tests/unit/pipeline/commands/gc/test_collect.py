"""What gc removes, what it keeps, and what it never touches."""

import json
import os
import shutil
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from slipway.pipeline.commands.gc import collect as collecting
from slipway.pipeline.commands.gc.collect import collect
from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.plan.resolver_keys import baseline_key
from slipway.pipeline.plan.state_folders import KeptStates
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.lock import locked
from slipway.pipeline.runs.record import NodeRecord, RunRecord
from slipway.pipeline.runs.run_target import ModuleRun, RecordedRequest, WorkloadRun

# Of ML Metadata's tables what gc reads; two types of contexts, and those of artifacts.
TABLES = """
    CREATE TABLE Type (id INT, name TEXT);
    CREATE TABLE Artifact (id INT, type_id INT, uri TEXT);
    CREATE TABLE ArtifactProperty (artifact_id INT, name TEXT, int_value INT, string_value TEXT);
    CREATE TABLE Execution (id INTEGER PRIMARY KEY, last_known_state INT);
    CREATE TABLE Context (id INTEGER PRIMARY KEY, type_id INT, name TEXT, UNIQUE (type_id, name));
    CREATE TABLE Association (context_id INT, execution_id INT);
    INSERT INTO Type VALUES (0, 'pipeline'), (1, 'node'), (2, 'ModelBlessing'), (3, 'schemas.DataVerdict'),
        (4, 'PushedModel');
"""


def test_checkpoints_elsewhere_are_told_and_not_touched(tmp_path):
    folder = Folder(tmp_path / "output")
    checkpoints = tmp_path / "checkpoints/0123456789abcdef"
    checkpoints.mkdir(parents=True)
    for number, named in enumerate([str(checkpoints.parent), "gs://bucket/checkpoints", None, {"wrong": 1}]):
        record = folder.run(number)
        config = json.dumps({"train": {"checkpoint": {"folder": named}}})
        record.target = RecordedRequest(target=WorkloadRun(config=config), output=folder.path)
        folder.history.save(record)
    found = collect(folder.path)
    assert found.to_json()["checkpoints"] == [str(checkpoints.parent), "gs://bucket/checkpoints"]
    assert found.text().splitlines()[-1] == (
        "Not looked at: gs://bucket/checkpoints (train.checkpoint.folder). A training that was given up "
        "leaves its checkpoints there: remove the folders in it that no training uses any more."
    )
    assert checkpoints.is_dir()


class Store:
    """A metadata store, as ML Metadata leaves it."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not self.path.exists()
        self.connection = sqlite3.connect(self.path)
        self.connection.execute("PRAGMA synchronous = OFF")
        if is_new:
            self.connection.executescript(TABLES)
        return self.connection

    def __exit__(self, *_):
        self.connection.commit()
        self.connection.close()

    def execution(self, number, node, pipeline="taxi"):
        with self as connection:
            connection.execute("INSERT OR IGNORE INTO Execution VALUES (?, 3)", (number,))
            for kind, name in enumerate((pipeline, f"{pipeline}.{node}")):
                connection.execute(
                    "INSERT OR IGNORE INTO Context (type_id, name) VALUES (?, ?)", (kind, name)
                )
                connection.execute(
                    "INSERT INTO Association SELECT id, ? FROM Context WHERE type_id = ? AND name = ?",
                    (number, kind, name),
                )

    def artifact(self, number, type_name, uri, **properties):
        with self as connection:
            connection.execute(
                "INSERT INTO Artifact SELECT ?, id, ? FROM Type WHERE name = ?", (number, uri, type_name)
            )
            for name, value in properties.items():
                row = (number, name, value, None) if isinstance(value, int) else (number, name, None, value)
                connection.execute("INSERT INTO ArtifactProperty VALUES (?, ?, ?, ?)", row)


class Folder:
    """An output folder with runs of `Ingest -> Trainer -> Pusher`, as the engine leaves it."""

    def __init__(self, path):
        self.path = path
        self.history = History(path)
        self.executions = 0
        self.store = Store(path / "metadata.db")

    def artifact(self, node, execution=None, type_name="Model", **properties):
        self.executions += execution is None
        name = str(execution or self.executions)
        folder = self.path / "artifacts" / "taxi" / node / "out" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "data").write_bytes(b"x" * 1000)
        self.store.execution(int(name), node)
        (self.path / "artifacts" / "taxi" / node / ".system" / "executor_execution" / name).mkdir(
            parents=True, exist_ok=True
        )
        return {"uri": str(folder), "type": type_name, "properties": properties}

    def run(self, number, *, trains=True, workload="taxi", state="complete", seed=0, **facts):
        """One run; with `trains=False` the Trainer is answered from the cache."""
        record = RunRecord(
            run_id=f"2026112{number // 10}-00000{number % 10}-abcd",
            workload=workload,
            state=state,
            started_at=f"2026-11-2{number // 10}T00:00:0{number % 10}+00:00",
            target=RecordedRequest(target=WorkloadRun(config="{}"), output=self.path),
            **facts,
        )
        (self.history.folder(record.run_id) / "logs").mkdir(parents=True)
        key = Fingerprint({"param:seed": str(seed), "param:workload": workload}).key
        entry = None if trains else self.history.recall(key)
        outputs = entry["outputs"] if entry else {"model": [self.artifact("Trainer")]}
        node = NodeRecord("Trainer", state="cached" if entry else "complete", key=key, outputs=outputs)
        node.execution_id = self.executions
        record.nodes = [node]
        self.history.save(record)
        if entry is None:
            self.history.remember(key, {"run_id": record.run_id, "execution_id": 1, "outputs": outputs})
        return record

    def pushed(self, version):
        path = self.path / "serving" / "taxi" / version
        path.mkdir(parents=True)
        return {"version": version, "path": str(path)}

    def has_model_of(self, record):
        return (self.uri(record) / "data").exists()

    def uri(self, record):
        return self.path / os.path.relpath(record.nodes[0].outputs["model"][0]["uri"], self.path)

    @property
    def run_ids(self):
        return [run.run_id for run in self.history.runs()]

    def everything(self):
        """Each path with its content, but for the lock."""
        return {
            str(path.relative_to(self.path)): path.read_bytes() if path.is_file() else None
            for path in sorted(self.path.rglob("*"))
            if path.name not in (".lock", ".pushes")  # where locks are
        }


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path / "output")


def test_newest_runs_stay_whole_and_older_ones_go_with_artifacts_and_cache(folder):
    runs = [folder.run(i, seed=i) for i in range(4)]
    cleanup = collect(folder.path, keep=2)
    assert folder.run_ids == [runs[3].run_id, runs[2].run_id]
    assert [folder.has_model_of(run) for run in runs] == [False, False, True, True]
    assert [folder.history.recall(run.nodes[0].key) is not None for run in runs] == [False, False, True, True]
    assert cleanup.text().startswith("Removed 2 runs, 2 artifact folders, 2 cache entries:")


def test_dry_run_tells_the_same_and_removes_nothing(folder):
    for i in range(3):
        folder.run(i, seed=i)
    before = folder.everything()
    planned = collect(folder.path, keep=1, dry_run=True)
    assert folder.everything() == before
    assert collect(folder.path, keep=1).removals == planned.removals
    assert planned.text(command="python local_runner.py gc").endswith("hint: python local_runner.py gc")
    assert "artifacts/taxi/Trainer/out/1" in planned.text()


def test_second_call_finds_nothing_to_remove(folder):
    for i in range(3):
        folder.run(i, seed=i)
    collect(folder.path, keep=1)
    assert collect(folder.path, keep=1).removals == ()
    assert collect(folder.path, keep=1).text() == "Nothing to remove. Kept: 1 run."


def test_what_unfinished_nodes_kept_goes_unless_a_kept_run_can_go_on_with_it(folder):
    states = KeptStates(folder.path)
    runs = [
        folder.run(0, seed=0, state="killed"),
        folder.run(1, seed=1),
        folder.run(2, seed=2, state="failed"),
        folder.run(3, seed=3),
    ]
    kept = [states.folder(run.nodes[0].key, "Trainer") for run in runs]
    for path in kept:
        path.mkdir(parents=True)
        (path / "epoch-00001.npz").write_bytes(b"x" * 1000)
    cleanup = collect(folder.path, keep=3)
    assert [path.exists() for path in kept] == [False, False, True, False]
    assert "3 checkpoint folders" in cleanup.text()


@pytest.mark.parametrize(("days", "stays"), [(2, True), (30, False)])
def test_a_run_in_steps_stays_between_two_steps_and_goes_if_it_was_given_up(folder, days, stays):
    run = folder.run(0, seed=0, state="running", in_steps=True)
    run.started_at = (datetime.now(UTC) - timedelta(days=days)).isoformat(timespec="seconds")
    folder.history.save(run)
    state = KeptStates(folder.path).folder(run.nodes[0].key, "Trainer")
    state.mkdir(parents=True)
    begun = folder.path / "artifacts" / "taxi" / "Trainer" / ".system" / "executor_execution" / "99"
    begun.mkdir()  # of a node of the run whose step has not ended, which no record names
    at = datetime.fromisoformat(run.started_at).timestamp() + 60
    os.utime(begun, (at, at))
    for i in (1, 2):
        folder.run(i, seed=i)
    collect(folder.path, keep=1)
    assert (run.run_id in folder.run_ids, folder.has_model_of(run)) == (stays, stays)
    assert (folder.history.recall(run.nodes[0].key) is not None) == stays
    assert (state.exists(), begun.exists()) == (stays, stays)


def test_linked_state_folder_is_refused(folder, tmp_path):
    folder.run(0)
    (tmp_path / "elsewhere" / "mine").mkdir(parents=True)
    KeptStates(folder.path).root.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="is a link"):
        collect(folder.path)
    assert (tmp_path / "elsewhere" / "mine").exists()


def test_keep_counts_each_pipeline_by_itself(folder):
    digits = folder.run(0, workload="digits")
    taxi = [folder.run(i, seed=i) for i in range(1, 4)]
    collect(folder.path, keep=1)
    assert folder.run_ids == [taxi[2].run_id, digits.run_id]


def test_artifact_that_a_kept_run_took_from_the_cache_stays(folder):
    maker = folder.run(0)
    user = folder.run(1, trains=False)
    collect(folder.path, keep=1)
    assert folder.run_ids == [user.run_id]
    assert folder.has_model_of(maker)
    assert folder.history.recall(user.nodes[0].key) is not None


def test_answer_of_the_cache_for_a_kept_run_stays_though_a_dropped_run_made_it(folder):
    pushed = folder.run(0, pushed=folder.pushed("7"))
    again = folder.run(1)  # the same key once more, as --no-cache makes it
    folder.run(2, seed=2)
    collect(folder.path, keep=1)
    assert again.run_id not in folder.run_ids
    assert folder.has_model_of(again)
    assert folder.has_model_of(pushed)


def test_run_whose_version_is_still_served_is_kept(folder):
    served, withdrawn = (folder.run(i, seed=i, pushed=folder.pushed(str(i))) for i in range(2))
    folder.run(2, seed=2)
    shutil.rmtree(withdrawn.pushed["path"])
    cleanup = collect(folder.path, keep=1)
    assert cleanup.kept[served.run_id] == "pushed version 0"
    assert withdrawn.run_id not in cleanup.kept
    assert (folder.path / "serving" / "taxi" / "0").is_dir()


@pytest.mark.parametrize("is_mounted", [False, True])
def test_version_on_a_disk_that_is_not_mounted_counts_as_served(folder, tmp_path, is_mounted):
    share = tmp_path / "share/taxi"
    pushed = folder.run(0, pushed={"version": "1", "path": str(share / "1")})
    folder.run(1, seed=1)
    share.parent.mkdir()  # where it is mounted
    if is_mounted:
        (share / "2").mkdir(parents=True)
    assert (pushed.run_id in collect(folder.path, keep=1).kept) is not is_mounted


def test_version_pushed_to_another_machine_counts_as_served(folder):
    served = folder.run(0, pushed={"version": "1", "path": "gs://bucket/taxi/1"})
    folder.run(1, seed=1)
    assert served.run_id in collect(folder.path, keep=1).kept


def test_of_runs_that_name_one_version_the_one_that_pushed_it_is_kept(folder):
    version = folder.pushed("7")
    runs = [folder.run(i, trains=i == 0, pushed=version) for i in range(5)]
    assert list(collect(folder.path, keep=1).kept) == [runs[4].run_id, runs[0].run_id]


def test_latest_blessed_model_is_kept_as_a_baseline(folder):
    blessed = folder.run(0, blessed=True)
    folder.run(1, seed=1, blessed=False)
    newest = folder.run(2, seed=2, blessed=False)
    cleanup = collect(folder.path, keep=1)
    assert cleanup.kept == {newest.run_id: "among the newest", blessed.run_id: "made a baseline"}
    assert folder.has_model_of(blessed)


@pytest.mark.parametrize("seeds", [[0, 1, 2], [0, 1, 0], [0, 0, 0], [0, 1, 1], [2, 1, 2]])
def test_baseline_of_any_candidate_is_the_same_after_gc(folder, seeds):
    runs = [folder.run(i, seed=seed, blessed=True) for i, seed in enumerate(seeds)]
    candidates = [run.nodes[0].key for run in runs] + ["new"]

    def baselines():
        return [baseline_key(folder.history.runs(), workload="taxi", candidate=key) for key in candidates]

    before = baselines()
    collect(folder.path, keep=1)
    assert baselines() == before


def test_blessed_model_with_the_highest_id_stays_though_earlier_ones_were_blessed_again(folder):
    runs = [folder.run(i, trains=i < 3, seed=seed, blessed=True) for i, seed in enumerate([0, 1, 2, 0, 1])]
    kept = collect(folder.path, keep=1).kept
    assert kept[runs[2].run_id] == "made a baseline", "TFX's resolver would find it"
    assert folder.has_model_of(runs[2])


@pytest.fixture
def store(folder):
    """Adds an artifact to the metadata store."""
    return folder.store.artifact


def test_blessed_model_that_only_the_metadata_store_knows_stays(folder, store):
    model = folder.artifact("Trainer")["uri"]
    older = folder.artifact("Trainer")["uri"]
    for number, current in ((1, older), (2, model)):
        uri = f"{folder.path}/artifacts/gate/{number}"
        store(number, "ModelBlessing", uri, blessed=1, current_model=current)
    folder.run(0)
    collect(folder.path, keep=1)
    assert Path(model).exists()
    assert not Path(older).exists()


def test_baseline_that_a_user_set_stays_and_retired_ones_do_not(folder, store):
    runs = [folder.run(i, seed=i, blessed=True) for i in range(4)]
    for number, run in enumerate(runs, start=1):
        uri = f"{folder.path}/artifacts/taxi/ModelGate/blessing/{number}"
        blessing = {"uri": uri, "type": "ModelBlessing", "properties": {}}
        run.nodes.append(NodeRecord("ModelGate", state="complete", outputs={"blessing": [blessing]}))
        folder.history.save(run)
        model = {"current_model": str(folder.uri(run)), "current_model_id": number if number < 2 else -number}
        store(number, "ModelBlessing", uri, blessed=1, **model)
    retired = [run.nodes[1].outputs["blessing"][0]["uri"] for run in runs[1:]]
    change = {"at": "", "action": "set", "run_id": runs[0].run_id, "reason": "", "retired": retired}
    (folder.path / "baselines").mkdir()
    (folder.path / "baselines" / "taxi.jsonl").write_text(json.dumps(change))
    folder.run(4, seed=4)
    cleanup = collect(folder.path, keep=1)
    assert cleanup.kept[runs[0].run_id] == "made a baseline"
    assert [folder.has_model_of(run) for run in runs] == [True, False, False, False]


def test_latest_verdict_about_each_span_stays_to_be_compared_with(folder, store):
    uris = [folder.artifact("DataGate", type_name="schemas.DataVerdict")["uri"] for _ in range(4)]
    for number, span in enumerate((3, 3, 4, 4)):
        store(number, "schemas.DataVerdict", uris[number], passed=1, span=span)
    folder.run(0)
    collect(folder.path, keep=1)
    assert [Path(uri).exists() for uri in uris] == [False, True, False, True]


def test_latest_verdict_about_each_span_stays_though_the_store_is_on_a_server(folder):
    uris = []
    for number, span in enumerate((3, 3, 4, 4)):
        run = folder.run(number)
        verdict = folder.artifact("DataGate", type_name="schemas.DataVerdict", passed=1, span=span)
        gate = NodeRecord("DataGate", state="complete", outputs={"verdict": [verdict]})
        gate.execution_id = folder.executions
        run.nodes.append(gate)
        folder.history.save(run)
        uris.append(verdict["uri"])
    folder.run(4)
    (folder.path / "metadata.db").unlink()
    collect(folder.path, keep=1)
    assert [Path(uri).exists() for uri in uris] == [False, True, False, True]


def test_resolver_of_a_pipeline_of_the_users_own_finds_the_latest_model(folder):
    runs = [folder.run(i, seed=i % 2, trains=i < 2) for i in range(3)]
    for run in runs:  # the third took the first one's model
        run.target = RecordedRequest(target=ModuleRun(pipeline="m:f"), output=folder.path)
        run.nodes.append(NodeRecord("Latest", type="Resolver", state="complete"))
        run.nodes[0].execution_id = 1 + int(run.nodes[0].outputs["model"][0]["uri"].rpartition("/")[2])
        folder.history.save(run)
    assert collect(folder.path, keep=1).kept[runs[1].run_id] == "has the latest result of Trainer"


def served_in(folder, *names):
    """Models that a pipeline of TFX's templates serves: below its own root."""
    made = [folder.path / "artifacts" / "taxi" / "serving_model" / name for name in names]
    for path in made:
        path.mkdir(parents=True)
        (path / "saved_model.pb").write_text("live")
    return made


def test_served_models_under_the_root_of_the_pipeline_stay_whoever_pushed_them(folder, store):
    recorded, known, unknown = served_in(folder, "1700000001", "1700000002", "1700000003")
    pushing = folder.run(0, seed=1)
    pushing.nodes.append(NodeRecord("Pusher", state="complete"))
    copy = folder.artifact("Pusher", type_name="PushedModel", pushed=1, pushed_destination=str(recorded))
    pushing.nodes[-1].outputs = {"pushed_model": [copy]}
    folder.history.save(pushing)
    store(77, "PushedModel", f"{folder.path}/gone", pushed=1, pushed_destination=str(known))
    (folder.path / "artifacts" / "taxi" / "_wheels").mkdir()
    (folder.path / "artifacts" / "taxi" / "_wheels" / "user.whl").write_text("code")
    folder.run(1)
    cleanup = collect(folder.path, keep=1)
    assert pushing.run_id not in cleanup.kept
    assert not folder.has_model_of(pushing)
    assert all((path / "saved_model.pb").exists() for path in (recorded, known, unknown))
    assert (folder.path / "artifacts" / "taxi" / "_wheels" / "user.whl").exists()


def test_served_model_stays_where_it_looks_like_an_execution_of_the_pusher(folder, store):
    for number in (41, 42):
        folder.store.execution(number, "Pusher")
    serving = folder.path / "artifacts" / "taxi" / "Pusher" / "serving"
    for number in ("41", "42"):
        (serving / number).mkdir(parents=True)
        (serving / number / "saved_model.pb").write_text("live")
    store(41, "PushedModel", "/elsewhere/1", pushed=1, pushed_destination=str(serving / "41"))
    pushing = folder.run(0, seed=1)
    pushing.pushed = {"version": "42", "path": str(serving / "42")}
    folder.history.save(pushing)
    folder.run(1)
    collect(folder.path, keep=1)
    assert (serving / "41" / "saved_model.pb").exists()
    assert (serving / "42" / "saved_model.pb").exists()


@pytest.mark.parametrize("is_recorded", [True, False])
def test_model_of_a_pusher_that_does_not_say_where_it_went_stays(folder, store, is_recorded):
    pushed = folder.artifact("OwnPusher", type_name="PushedModel", pushed=1)
    if is_recorded:
        run = folder.run(0, seed=1)
        run.nodes.append(NodeRecord("OwnPusher", state="complete", outputs={"pushed": [pushed]}))
        folder.history.save(run)
    else:
        store(5, "PushedModel", pushed["uri"], pushed=1)
    folder.run(1)
    collect(folder.path, keep=1)
    assert Path(pushed["uri"], "data").exists()


def test_what_no_execution_made_stays_though_a_dropped_run_or_the_store_names_it(folder, store):
    imported = folder.path / "artifacts" / "mine" / "schema" / "1"
    imported.mkdir(parents=True)
    (imported / "schema.pbtxt").write_text("mine")
    run = folder.run(0, seed=1)
    run.nodes.append(NodeRecord("Importer", state="complete", execution_id=1))
    run.nodes[-1].outputs = {"result": [{"uri": str(imported), "type": "Schema", "properties": {}}]}
    folder.history.save(run)
    folder.store.execution(1, "Importer")
    store(1, "Schema", str(imported))
    folder.run(1)
    collect(folder.path, keep=1)
    assert (imported / "schema.pbtxt").read_text() == "mine"
    assert not folder.has_model_of(run)


def test_without_the_store_that_knows_it_nothing_unnamed_goes(folder):
    run = folder.run(0, seed=1)
    leftover = folder.artifact("Transform")["uri"]
    folder.run(1)
    (folder.path / "metadata.db").unlink()
    collect(folder.path, keep=1)
    assert Path(leftover).exists()
    assert not folder.has_model_of(run), "its record names it"


def test_node_whose_name_has_a_slash_is_collected_as_any_other(folder):
    kept = folder.run(0)
    leftover = folder.artifact("train/Trainer")["uri"]
    collect(folder.path, keep=1)
    assert not Path(leftover).exists()
    assert folder.has_model_of(kept)


def test_artifacts_of_a_dropped_rehearsal_go(folder):
    dropped, kept = folder.run(0, seed=1), folder.run(1)
    tasks = []
    for run in (dropped, kept):
        task = folder.path / "artifacts" / "taxi" / run.run_id / "Trainer_1" / "model"
        task.mkdir(parents=True)
        run.nodes[0].outputs = {"model": [{"uri": str(task), "type": "Model", "properties": {}}]}
        folder.history.save(run)
        tasks.append(task)
    collect(folder.path, keep=1)
    assert [task.exists() for task in tasks] == [False, True]


def test_leftovers_of_executions_that_no_record_names_go(folder):
    run = folder.run(0)
    leftover = folder.artifact("Trainer")["uri"]
    collect(folder.path, keep=1)
    assert not Path(leftover).exists()
    assert folder.has_model_of(run)
    assert not (folder.path / "artifacts" / "taxi" / "Trainer" / ".system").exists()


@pytest.mark.parametrize("state", ["running", "failed", "interrupted", "killed"])
def test_what_a_run_that_can_be_resumed_may_go_on_with_stays(folder, state):
    dropped = folder.run(0, seed=1)
    folder.run(1, state=state)
    system = folder.path / "artifacts" / "taxi" / "Trainer" / ".system" / "stateful_working_dir"
    checkpoint = system / "0b64-uuid" / "old-and-new"
    checkpoint.mkdir(parents=True)
    (checkpoint / "weights").write_text("w")
    os.utime(checkpoint, (0, 0))  # a file that keeps an older time is no reason to tear a checkpoint apart
    os.utime(checkpoint / "weights", (0, 0))
    unnamed = folder.artifact("Transform")["uri"]
    collect(folder.path, keep=1)
    assert (checkpoint / "weights").exists()
    assert Path(unnamed).exists()
    assert not folder.has_model_of(dropped)


def test_leftovers_older_than_a_run_that_can_be_resumed_go(folder):
    leftover = folder.artifact("Transform")["uri"]
    for path in (leftover, f"{leftover}/data"):
        os.utime(path, (0, 0))
    folder.run(1, state="failed")
    collect(folder.path, keep=1)
    assert not Path(leftover).exists()


def test_nothing_outside_of_the_folder_is_touched(folder, tmp_path):
    outside = tmp_path / "outside" / "model"
    outside.mkdir(parents=True)
    (outside / "data").write_text("precious")
    dropped = folder.run(0, seed=1)
    dropped.nodes[0].outputs["model"].append({"uri": str(outside), "type": "Model", "properties": {}})
    dropped.nodes[0].outputs["model"].append({"uri": "gs://bucket/m", "type": "Model", "properties": {}})
    folder.history.save(dropped)
    (folder.uri(dropped) / "link").symlink_to(outside)
    (folder.path / "artifacts" / "linked").symlink_to(outside.parent)
    (folder.path / "runs" / "linked").symlink_to(outside.parent)
    folder.run(1)
    collect(folder.path, keep=1)
    assert (outside / "data").read_text() == "precious"
    assert (folder.path / "artifacts" / "linked").is_symlink()
    assert (folder.path / "metadata.db").exists()
    assert not folder.has_model_of(dropped)


def test_record_that_names_another_folder_cannot_lead_out_of_runs(folder, tmp_path):
    victim = tmp_path / "victim"
    victim.mkdir()
    evil = folder.run(0, seed=1)
    document = evil.to_json() | {"run_id": "../../victim"}
    (folder.history.folder(evil.run_id) / "run.json").write_text(json.dumps(document))
    folder.run(1)
    with pytest.raises(UsageError, match="not the record of that run"):
        collect(folder.path, keep=1)
    assert victim.is_dir()


@pytest.mark.parametrize("name", ["artifacts", "runs", "cache"])
def test_linked_folder_is_refused(folder, tmp_path, name):
    folder.run(0)
    (folder.path / name).rename(tmp_path / "elsewhere")
    (folder.path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match=f"{name} is a link"):
        collect(folder.path)


def test_moved_folder_keeps_what_its_runs_need(folder, tmp_path):
    dropped, kept = folder.run(0, seed=1), folder.run(1, pushed=folder.pushed("3"))
    moved = Folder(tmp_path / "moved")
    folder.path.rename(moved.path)
    collect(moved.path, keep=1)
    assert (moved.path / folder.uri(kept).relative_to(folder.path) / "data").exists()
    assert not (moved.path / folder.uri(dropped).relative_to(folder.path)).exists()


def test_folder_reached_by_a_link_keeps_what_its_runs_need(folder, tmp_path):
    link = tmp_path / "link"
    folder.path.mkdir()
    link.symlink_to(folder.path)
    linked = Folder(link)
    dropped, kept = linked.run(0, seed=1), linked.run(1)
    collect(link, keep=1)
    assert linked.has_model_of(kept)
    assert not linked.has_model_of(dropped)


def test_damaged_record_stops_gc_before_anything_goes(folder):
    damaged = folder.run(0, seed=1)
    folder.run(1)
    (folder.history.folder(damaged.run_id) / "run.json").write_text("{")
    before = folder.everything()
    with pytest.raises(UsageError, match="it is not known which artifacts the run needs"):
        collect(folder.path, keep=1)
    assert folder.everything() == before


def test_run_that_died_before_its_first_record_goes(folder):
    folder.run(1)
    (folder.path / "runs" / "20261120-000000-dead" / "logs").mkdir(parents=True)
    collect(folder.path)
    assert not (folder.path / "runs" / "20261120-000000-dead").exists()


def test_wherever_it_is_killed_nothing_points_to_what_is_gone_and_the_next_call_goes_on(folder, monkeypatch):
    for i in range(4):
        folder.run(i, seed=i)
    total = len(collect(folder.path, keep=1, dry_run=True).removals)
    remove = collecting._remove
    for survives in range(total):
        done = []

        def killed(removal, done=done, survives=survives):
            if len(done) == survives:
                raise KeyboardInterrupt
            done.append(removal)
            remove(removal)

        copy = Folder(folder.path.with_name(f"killed-{survives}"))
        shutil.copytree(folder.path, copy.path)
        monkeypatch.setattr(collecting, "_remove", killed)
        with pytest.raises(KeyboardInterrupt):
            collect(copy.path, keep=1)
        monkeypatch.setattr(collecting, "_remove", remove)
        named = [folder.uri(run).relative_to(folder.path) for run in copy.history.runs()]
        assert all((copy.path / uri / "data").exists() for uri in named)
        collect(copy.path, keep=1)
        assert len(list((copy.path / "artifacts" / "taxi" / "Trainer" / "out").iterdir())) == 1
        assert len(copy.run_ids) == 1


def test_engine_at_work_is_not_disturbed(folder):
    folder.run(0)
    with locked(folder.path, run_id="r1"), pytest.raises(UsageError, match="in use by"):
        collect(folder.path)


@pytest.mark.parametrize("keep", [0, -3])
def test_keeping_no_run_is_refused(folder, keep):
    folder.run(0)
    with pytest.raises(UsageError, match=f"--keep {keep}: must be at least 1"):
        collect(folder.path, keep=keep)


def test_folder_that_does_not_exist_is_not_made(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        collect(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_folder_without_runs_keeps_its_artifacts(folder):
    uri = folder.artifact("Trainer")["uri"]
    with pytest.raises(UsageError, match="has no runs yet"):
        collect(folder.path)
    assert Path(uri).exists()


def test_what_cannot_be_removed_is_named(folder, monkeypatch):
    folder.run(0, seed=1)
    folder.run(1)

    run, unlink = folder.path / "runs" / folder.run_ids[-1], os.unlink
    (run / "logs" / "Trainer.log").write_text("")

    def denied(path, **place):
        if path == "Trainer.log":  # as Python tells what lies in a folder that is removed
            raise PermissionError(13, "Permission denied", path)
        unlink(path, **place)

    monkeypatch.setattr(os, "unlink", denied)
    wanted = rf"{run} cannot be removed \(Trainer\.log\): Permission denied"
    with pytest.raises(PipelineError, match=wanted) as caught:
        collect(folder.path, keep=1)
    assert "gc again" in caught.value.hint


def test_damaged_store_stops_gc_before_anything_goes(folder):
    folder.run(0, seed=1)
    folder.run(1)
    (folder.path / "metadata.db").write_bytes(b"no database, but long enough to be looked at" * 100)
    with pytest.raises(UsageError, match="is damaged"):
        collect(folder.path, keep=1)
    assert len(folder.run_ids) == 2


def test_compiled_graphs_and_digests_stay_in_the_cache(folder):
    folder.run(0)
    for name in ("graph-abc.json", "digests.json"):
        (folder.path / "cache" / name).write_text("{}")
    collect(folder.path)
    assert {path.name for path in (folder.path / "cache").glob("*.json")} >= {
        "graph-abc.json",
        "digests.json",
    }
