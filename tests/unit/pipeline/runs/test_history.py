"""What an output folder remembers."""

import os
from datetime import UTC, datetime

import pytest

from slipway.pipeline.errors import UsageError
from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.runs import history as module
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.history import History, result_of
from slipway.pipeline.runs.record import NodeRecord, RunRecord


@pytest.fixture
def history(tmp_path):
    return History(tmp_path / "output")


def finished(history, workload="taxi", **states):
    record = history.new_run(workload)
    record.nodes = [NodeRecord(node_id, state=state) for node_id, state in states.items()]
    history.save(record)
    return record


def test_run_is_read_back_as_it_was_saved(history):
    record = finished(history, Ingest="complete")
    record.metrics, record.blessed = {"auc": 0.95}, True
    history.save(record)
    assert history.find(record.run_id) == record


def test_two_runs_of_the_same_second_have_two_names(history):
    assert len({history.new_run("taxi").run_id for _ in range(20)}) == 20


def test_run_is_read_by_its_whole_id_only(history):
    record = finished(history)
    assert history.run(record.run_id) == record
    assert history.run(record.run_id[:-1]) is None
    (history.folder(record.run_id) / "run.json").write_text("{", encoding="utf-8")
    assert history.run(record.run_id) is None
    assert record.run_id in history.damaged


def test_latest_run_is_found_without_a_name_and_by_the_start_of_its_id(history):
    record = finished(history)
    assert history.find(None).run_id == record.run_id
    assert history.find(record.run_id[:-1]).run_id == record.run_id


def test_runs_that_went_on_after_a_later_one_had_begun_are_late(history):
    """A run that was merely written again, such as by a copy, is not."""
    begun_s, records = 1_795_000_000, []
    for number, (resumed, in_steps) in enumerate([(1, False), (0, True), (0, False), (1, False), (0, False)]):
        time = datetime.fromtimestamp(begun_s + 60 * number, UTC).strftime("%Y%m%d-%H%M%S")
        records.append(history.new_run("taxi", run_id=f"{time}-0000"))
        records[-1].resumed, records[-1].in_steps = resumed, in_steps
        history.save(records[-1])
    after = [500, 500, 500, 190, 500]  # in seconds; the fourth run ended before the fifth began
    for record, changed_s in zip(records, after, strict=True):
        os.utime(record.folder / "run.json", times=(0, begun_s + changed_s))
    assert [run.run_id for run in history.late_runs()] == [records[1].run_id, records[0].run_id]


def test_no_more_records_are_read_than_are_asked_for(history, monkeypatch):
    ids = []
    for _ in range(30):
        ids.append(finished(history).run_id)
    reads = []
    read = History._read
    monkeypatch.setattr(
        History, "_read", lambda self, path, *more: reads.append(path) or read(self, path, *more)
    )
    newest = max(ids)
    assert next(history.runs()).run_id == newest
    assert len(reads) == 1
    assert history.find(newest).run_id == newest
    assert len(reads) == 3, "the latest, to name it where there is no such run, and the one"
    assert len(list(history.latest_runs("taxi", limit=2))) == 2
    assert len(reads) == 5
    assert list(history.latest_runs("digits", limit=2)) == []
    assert len(reads) == 25


def test_unknown_run_is_refused_with_the_latest(history):
    record = finished(history)
    with pytest.raises(UsageError, match=f"No run 'nope'. Latest: '{record.run_id}'"):
        history.find("nope")


def test_start_of_several_ids_is_refused(history):
    finished(history)
    finished(history)
    with pytest.raises(UsageError, match="fits 2 runs"):
        history.find("2")


def test_folder_without_runs_says_how_to_start(history):
    with pytest.raises(UsageError, match="has no runs yet") as caught:
        history.find(None)
    assert caught.value.hint == f"python local_runner.py run --output {history.output}"


def test_what_another_command_removes_meanwhile_is_no_error(history, monkeypatch):
    history.save(history.new_run("taxi"))
    (history.output / "cache").mkdir()
    (history.output / "cache" / "plan-gone").symlink_to("nowhere")  # as a folder between listing and looking
    with history.scratch() as folder:
        assert folder.is_dir()
    read = module.read_document

    def read_too_late(kind, path, **options):
        path.unlink()
        return read(kind, path, **options)

    monkeypatch.setattr(module, "read_document", read_too_late)
    assert list(history.runs()) == []
    assert history.damaged == {}


def test_damaged_record_hides_its_run_and_no_other(history):
    good, bad = finished(history), finished(history)
    (history.folder(bad.run_id) / "run.json").write_text('{"run_id": "x"', encoding="utf-8")
    assert [run.run_id for run in history.runs()] == [good.run_id]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"run_id": "x"', "its 14 bytes are not complete JSON; the file was truncated or changed"),
        ('{"nodes": [1]}', "run_id is missing"),
        ('{"run_id": "x", "workload": "taxi", "nodes": [1]}', "nodes[0] is 1, where a mapping belongs"),
        ('{"run_id": "x", "workload": 7}', "workload is 7, where text belongs"),
        (
            '{"run_id": "x", "workload": "taxi", "pushed": {"version": "1"}}',
            "pushed.path is missing",
        ),
        (
            '{"run_id": "x", "workload": "taxi", "target": {"origin": {}, "parameters": []}}',
            "target.parameters is [], where a mapping belongs",
        ),
        ("[]", "the whole is [], where a mapping belongs"),
    ],
)
def test_newest_run_with_a_damaged_record_is_refused_by_name_and_no_older_one_taken(history, content, why):
    old, new = sorted([finished(history), finished(history)], key=lambda run: run.run_id)
    path = history.folder(new.run_id) / "run.json"
    path.write_text(content, encoding="utf-8")
    for name in (None, "latest", new.run_id):
        with pytest.raises(UsageError) as raised:
            History(history.output).find(name)
        assert raised.value.message == f"{path} cannot be read: {why}"
        assert f"such as {old.run_id}; or give this one up: mv {path} {path}.damaged" in raised.value.hint
    assert history.find(old.run_id) == old
    path.rename(f"{path}.damaged")
    assert History(history.output).find(None) == old


def test_run_that_died_before_its_first_record_is_passed_over(history):
    old = finished(history)
    (history.output / "runs" / "99991231-000000-ffff").mkdir()
    assert history.find(None) == old
    assert history.damaged == {}


@pytest.mark.parametrize("content", ["", "[]", '{"Ingest": {}}', '{"Ingest": "{}"}'])
def test_damaged_fingerprints_of_an_earlier_run_are_passed_over(history, content):
    good = Fingerprint({"code:a.py": "1"})
    old, new = sorted([finished(history, Ingest="complete") for _ in "12"], key=lambda run: run.run_id)
    history.save_fingerprints(old.run_id, {"Ingest": good})
    (history.folder(new.run_id) / "fingerprints.json").write_text(content, encoding="utf-8")
    assert history.last_fingerprints("taxi") == {"Ingest": good}


def test_last_fingerprint_of_a_node_is_that_of_the_run_that_completed_it(history):
    old, new = Fingerprint({"code:a.py": "1"}), Fingerprint({"code:a.py": "2"})
    first = finished(history, Ingest="complete", Trainer="complete")
    history.save_fingerprints(first.run_id, {"Ingest": old, "Trainer": old})
    second = history.new_run("taxi")
    second.run_id = "9" + second.run_id  # later than the first, whatever the clock says
    history.folder(second.run_id).mkdir()
    second.nodes = [NodeRecord("Ingest", state="complete"), NodeRecord("Trainer", state="failed")]
    history.save(second)
    history.save_fingerprints(second.run_id, {"Ingest": new, "Trainer": new})
    assert history.last_fingerprints("taxi") == {"Ingest": new, "Trainer": old}
    assert history.last_fingerprints("digits") == {}


def test_remembered_result_is_recalled_by_its_key_alone(history):
    made = {"uri": "/a", "type": "Model", "properties": {"n": 1}}
    result = {
        "run_id": "r",
        "execution_id": 7,
        "outputs": {"model": [made]},
        "files": {"/a/f": (3, 5, "ab")},
        "unmet": "",
    }
    history.remember("k1", result)
    assert history.recall("k1") == result
    assert history.recall("k2") is None


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[1]", "\x00", "{}", "null", "[" * 100_000),
        '{"run_id": "r", "execution_id": "7", "outputs": {}}',
        '{"run_id": "r", "execution_id": 7, "outputs": {"model": [{"uri": "/a"}]}}',
        '{"run_id": "r", "execution_id": 7, "outputs": {}, "files": {"/a": [3, 5]}}',
    ],
)
def test_damaged_memory_is_a_miss(history, content):
    history.remember("k1", {})
    (history.output / "cache" / "k1.json").write_text(content, encoding="utf-8")
    assert history.recall("k1") is None
    assert history.recall_graph("k1") is None


def test_graph_is_recalled_as_it_was_compiled(history):
    graph = Graph("taxi", (Node("A", "A", ()), Node("B", "B", ("A",), params={"x": "1"}, timeout_s=3.0)))
    history.remember("graph-1", graph.to_json())
    assert history.recall_graph("graph-1") == graph
    assert history.recall("graph-1") is None


def test_events_are_one_json_object_a_line(history):
    record = finished(history)
    for state in ("running", "complete"):
        history.append_event(record.run_id, {"node": "Ingest", "state": state})
    lines = (history.folder(record.run_id) / "events.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 2
    assert '"state": "complete"' in lines[1]


def test_note_that_is_no_result_is_none(history):
    for key, entry in (("k1", {}), ("k2", {"nodes": []})):
        history.remember(key, entry)
        assert history.recall(key) is None
    result = result_of(NodeRecord("Make"), RunRecord("r", "toy"), files={})
    history.remember("k3", result)
    assert history.recall("k3") == result


def test_run_after_one_of_a_clock_that_was_fast_is_the_latest(history):
    fast = history.new_run("taxi", run_id="20990101-235959-abcd")
    history.save(fast)
    record = finished(history)
    assert record.run_id.startswith("20990101-235959-")
    assert history.find(None) == record


def test_runs_of_one_second_stand_in_the_order_that_they_were_made_in(history):
    made = [finished(history).run_id for _ in range(300)]
    assert made == sorted(made)


def test_folder_that_is_no_run_does_not_name_the_next_one(history):
    before = history.new_run("taxi", run_id="20990101-235959-abcd")
    history.new_run("taxi", run_id="zzz")
    assert before.run_id < history.new_run_id() < "2100"


@pytest.mark.parametrize("run_id", ["../../outside", "/outside", "20200101-000000-ffff", ""])
def test_record_that_names_another_folder_is_no_run(history, run_id):
    run = finished(history)
    path = history.folder(run.run_id) / "run.json"
    path.write_text(path.read_text().replace(run.run_id, run_id), encoding="utf-8")
    assert list(history.runs()) == []
    with pytest.raises(UsageError, match="not its folder's name"):
        history.find(run.run_id)
