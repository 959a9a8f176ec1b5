"""The engine with a launcher that answers as it is told, and a clock that goes on while it waits."""

import errno
import json
import os
import signal
from dataclasses import replace

import pytest

from slipway.pipeline.engine import journal as journals
from slipway.pipeline.engine import scheduler as engines
from slipway.pipeline.engine.journal import Journal
from slipway.pipeline.engine.launcher import Exited, LauncherLostError, Start, Started
from slipway.pipeline.engine.result_store import CachedResults
from slipway.pipeline.engine.run_end import conclude
from slipway.pipeline.engine.scheduler import Engine
from slipway.pipeline.errors import PipelineError
from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.plan.decide import Decision
from slipway.pipeline.plan.make_plan import Plan
from slipway.pipeline.plan.node_fingerprints import found_key
from slipway.pipeline.plan.state_folders import KeptStates
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.outcome import exit_code
from slipway.pipeline.runs.record import NodeRecord

LOST = LauncherLostError("The process that starts the nodes was ended by SIGKILL.", hint="see engine.log")
FAILED = {"state": "failed", "message": "no", "hint": "a hint", "where": "model.py line 3"}
MODEL = {"model": [{"uri": "m/1", "type": "Model", "properties": {}}]}
DONE = {"state": "complete", "execution_id": 7, "outputs": MODEL}
UNMET = {"state": "skipped"}
ENDED = None  # by a signal, without a result
BEGAN = 1000.0


class Answer:
    """What a node does: it lasts so long (s), then gives the result, unless a signal ends it before."""

    def __init__(self, result, *, lasts_s=1.0, code=1, peak_bytes=0, heeds=True, does=lambda: None):
        self.result, self.lasts_s, self.code, self.peak_bytes = result, lasts_s, code, peak_bytes
        self.heeds, self.does = heeds, does


class Launcher:
    """Ends each node that is started as its next answer says; where there is none it is gone."""

    def __init__(self, answers):
        self.now = BEGAN
        self.started = []
        self.signals = []
        self.is_killed = False
        self._answers = {node: list(each) for node, each in answers.items()}
        self._due = {}
        self._begun = []

    def monotonic(self):
        return self.now

    def start(self, start):
        self.started.append((self._at, start))
        answer = self._answers[start.node].pop(0)
        if isinstance(answer, Exception):
            raise answer
        answer = answer if isinstance(answer, Answer) else Answer(answer)
        answer.does()
        self._due[start.node] = (self.now + answer.lasts_s, answer, answer.result, answer.code)
        self._begun.append(Started(start.node, os.getpid()))

    def signal(self, node_id, signum):
        self.signals.append((self._at, node_id, signum))
        _, answer, *_ = self._due[node_id]
        if answer.heeds or signum == signal.SIGKILL:
            self._due[node_id] = (self.now, answer, ENDED, -signum)

    def receive(self, timeout_s):
        if not self._due and not any(self._answers.values()):
            raise LOST
        self.now = min([self.now + timeout_s, *(max(self.now, at) for at, *_ in self._due.values())])
        events, self._begun = self._begun, []
        for node, (at, answer, result, code) in list(self._due.items()):
            if at <= self.now:
                del self._due[node]
                events.append(Exited(node, code, answer.peak_bytes, result))
        return events

    def kill(self):
        self.is_killed = True

    def starts(self):
        """When which node was started, in seconds of the run."""
        return [(at, start.node) for at, start in self.started]

    @property
    def _at(self):
        return round(self.now - BEGAN, 3)


class Display:
    """Keeps what it is told."""

    def __init__(self):
        self.states, self.progress = [], []
        self.on_tick = lambda: None

    def changed(self, record, node):
        self.states.append((node.id, node.state))

    def tick(self, record, progress):
        self.progress.append(progress)
        self.on_tick()


A, B = Node("A", "A", ()), Node("B", "B", ("A",))


@pytest.fixture
def begin(tmp_path, monkeypatch):
    """An engine about to run those nodes, each with its answers; A before B unless told otherwise."""

    def call(answers, *, nodes=(A, B), decisions=(), jobs=1, changes_since=lambda _: (), **options):
        launcher, history = Launcher(answers), History(tmp_path)
        record = history.new_run("toy")
        record.nodes = [NodeRecord(node.id, node.type, upstream=list(node.upstream)) for node in nodes]
        prints = {}
        for node in nodes:
            ups = {f"upstream:{up}": prints[up].key for up in node.upstream}
            prints[node.id] = Fingerprint({"param:x": f'"{node.id}"', **ups})
        decided = {node.id: Decision(node.id, "run", "") for node in nodes} | dict(decisions)
        for node_id, decision in decided.items():
            if decision.action != "run":
                record.node(node_id).state = "cached" if decision.action == "reuse" else "skipped"
        for module in (engines, journals):
            monkeypatch.setattr(module, "time", launcher)
        plan = Plan(Graph("toy", tuple(nodes)), prints, decided, baseline="", reference="")
        journal = Journal(record, history, BEGAN)
        results = CachedResults(journal, plan, changes_since)
        return Engine(plan.graph, launcher, results, journal, Display(), jobs, **options)

    return call


@pytest.fixture
def run(begin):
    def call(answers, **options):
        engine = begin(answers, **options)
        engine.run()
        return engine

    return call


def states(engine):
    return {node.id: (node.state, node.why) for node in engine.record.nodes}


def test_nodes_run_in_their_order_and_what_they_did_is_on_record(run, tmp_path):
    engine = run({"A": [Answer(DONE, lasts_s=2.5, peak_bytes=5)], "B": [{**DONE, "state": "cached"}]})
    first, second = engine.record.nodes
    assert first == NodeRecord(
        "A", "A", "complete", wall_s=2.5, started_s=0.0, attempts=1, peak_bytes=5,
        key=engine.results.prints["A"].key, execution_id=7, outputs=MODEL, log="logs/A.log",
    )  # fmt: skip
    assert (second.state, second.started_s, second.wall_s, second.upstream) == ("cached", 2.5, 1.0, ["A"])
    assert engine.display.states == [
        ("A", "running"), ("A", "complete"), ("B", "running"), ("B", "cached")
    ]  # fmt: skip
    folder = engine.journal.history.folder(engine.record.run_id)
    assert engine.launcher.started[0] == (
        0.0,
        Start(
            node="A",
            attempt=1,
            log=str(folder / "logs/A.log"),
            progress=str(folder / "progress/A"),
            left=str(folder / "left/A"),
            state=str(KeptStates(tmp_path).folder(engine.results.prints["A"].key, "A")),
        ),
    )
    assert engine.record.wall_s == 3.5
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text("utf-8").splitlines()]
    assert [{**event, "at": ""} for event in events[:2]] == [
        {"at": "", "node": "A", "state": "running", "attempt": 1, "why": ""},
        {"at": "", "node": "A", "state": "complete", "attempt": 1, "why": ""},
    ]
    assert engine.journal.history.find(engine.record.run_id) == engine.record


def test_result_is_remembered_under_the_nodes_key_and_its_state_forgotten(begin):
    engine = begin({"A": [{**DONE, "files": {"f": [1, 2, "x"]}}], "B": [FAILED]})
    kept = [engine.results.state_folder(name) for name in "AB"]
    for folder in kept:
        folder.mkdir(parents=True)
    engine.run()
    remembered = engine.journal.history.recall(engine.results.prints["A"].key)
    assert remembered.pop("made_s") > 0
    assert remembered == {
        "node": "A", "run_id": engine.record.run_id, "execution_id": 7, "outputs": MODEL,
        "read": {}, "files": {"f": (1, 2, "x")}, "unmet": "",
    }  # fmt: skip
    assert engine.journal.history.recall(engine.results.prints["B"].key) is None
    assert not any(folder.exists() for folder in kept), "of B, for A ran before it"


def test_state_of_a_failed_node_stays_for_the_next_try(begin):
    engine = begin({"A": [FAILED]}, nodes=[A])
    kept = engine.results.state_folder("A")
    kept.mkdir(parents=True)
    engine.run()
    assert kept.exists()


def test_what_ran_while_its_code_changed_is_neither_remembered_nor_gone_on_with(begin):
    asked = []
    engine = begin(
        {"A": [DONE], "B": [FAILED]},
        decisions={"A": Decision("A", "run", "", is_forced=True)},
        changes_since=lambda node: asked.append(node) or ["train.log changed"],
    )
    engine.run()
    assert asked == ["A", "B"]
    assert (
        engine.record.node("A").why
        == "; not cached: its code or data changed while it ran: train.log changed"
    )
    assert engine.journal.history.recall(engine.results.prints["A"].key) is None
    failed = begin({"A": [FAILED]}, nodes=[A], changes_since=lambda _node: ["b.csv changed"])
    kept = failed.results.state_folder("A")
    kept.mkdir(parents=True)
    failed.run()
    assert not kept.exists()


def test_failed_node_is_tried_again_after_a_wait_that_doubles(run):
    answers = {"A": [FAILED, Answer(FAILED, peak_bytes=9), Answer(DONE, peak_bytes=3)]}
    engine = run(answers, nodes=[replace(A, retries=2, backoff_s=60.0)])
    assert engine.launcher.starts() == [(0.0, "A"), (61.0, "A"), (182.0, "A")]
    assert engine.record.node("A").peak_bytes == 9
    assert (engine.record.node("A").attempts, engine.record.node("A").error) == (3, None)
    assert [start.attempt for _, start in engine.launcher.started] == [1, 2, 3]
    events = engine.journal.history.folder(engine.record.run_id) / "events.jsonl"
    assert "retry 1 of 2 in 60 s: no" in events.read_text("utf-8")
    assert "retry 2 of 2 in 120 s: no" in events.read_text("utf-8")


def test_node_that_fails_too_often_fails_and_what_follows_is_skipped(run):
    third = Node("C", "C", ("B",))
    engine = run({"A": [FAILED, {**FAILED, "start": "Ingest"}]}, nodes=[replace(A, retries=1), B, third])
    assert states(engine)["A"][0] == "failed"
    assert engine.record.node("A").error == {
        "message": "no", "hint": "a hint", "where": "model.py line 3", "start": "Ingest"
    }  # fmt: skip
    assert [states(engine)[name] for name in "BC"] == [("skipped", "A failed")] * 2
    assert engine.display.states.count(("C", "skipped")) == 1
    assert exit_code(engine.record) == 1


def test_what_an_attempt_left_is_gone_when_the_next_begins(begin):
    engine = begin({}, nodes=[replace(A, retries=1, backoff_s=0.0)])
    folder = engine.journal.history.folder(engine.record.run_id)
    found = []

    def leaves():
        found.append(((folder / "progress/A").exists(), (folder / "left/A").exists()))
        (folder / "progress/A").write_text("{}", "utf-8")
        (folder / "left/A").mkdir(parents=True)

    engine.launcher._answers["A"] = [Answer(FAILED, does=leaves), Answer(DONE, does=leaves)]
    engine.run()
    assert found == [(False, False)] * 2


def test_preempted_node_starts_again_and_that_is_no_retry(run):
    preempted = {**FAILED, "is_preempted": True}
    engine = run({"A": [preempted] * 20 + [FAILED, DONE]}, nodes=[replace(A, retries=1, backoff_s=3.0)])
    node = engine.record.node("A")
    assert (node.state, node.attempts, node.preemptions) == ("complete", 22, 20)
    assert engine.launcher.starts()[:3] == [(0.0, "A"), (4.0, "A"), (8.0, "A")]
    events = engine.journal.history.folder(engine.record.run_id) / "events.jsonl"
    assert '"waiting", "attempt": 1, "why": "starts again: no"' in events.read_text("utf-8")
    assert [start.attempt for _, start in engine.launcher.started] == list(range(1, 23))
    often = run({"A": [preempted] * 21}, nodes=[A])
    assert (often.record.node("A").state, often.record.node("A").attempts) == ("failed", 21)


def test_gate_that_says_no_is_not_asked_again_and_its_verdict_is_kept(run):
    behind = Node("C", "C", ("B",))
    engine = run(
        {"A": [{**FAILED, "verdict": {"passed": False}}]},
        nodes=[replace(A, retries=3), B, behind],
        decisions={"B": Decision("B", "reuse", "cached")},
    )
    assert (engine.record.node("A").state, engine.record.node("A").is_stop) == ("failed", True)
    assert states(engine)["B"] == ("skipped", "A stopped the run"), "an earlier result behind the gate"
    assert states(engine)["C"] == ("skipped", "A stopped the run")
    folder = engine.journal.history.folder(engine.record.run_id)
    assert json.loads((folder / "verdicts/A.json").read_text("utf-8")) == {"passed": False}
    assert exit_code(engine.record) == 3


SIDE = Node("S", "S", ())


def test_failure_leaves_what_does_not_depend_on_it_alone(run):
    engine = run({"A": [FAILED], "S": [Answer(DONE, lasts_s=9.0)]}, nodes=[A, B, SIDE], jobs=2)
    assert [state for state, _ in states(engine).values()] == ["failed", "skipped", "complete"]
    assert engine.launcher.signals == []


def test_fail_fast_ends_what_runs_beside_and_starts_nothing_more(run):
    other = Node("T", "T", ())
    retried = replace(SIDE, retries=3)
    engine = run(
        {"A": [FAILED], "S": [Answer(DONE, lasts_s=9.0)]}, nodes=[A, retried, other], jobs=2, fail_fast=True
    )
    assert states(engine) == {
        "A": ("failed", ""),
        "S": ("skipped", "ended because A failed (--fail-fast)"),
        "T": ("skipped", "A failed"),
    }
    assert engine.launcher.signals == [(1.0, "S", signal.SIGTERM)]


def test_fail_fast_gives_up_what_waits_for_its_next_try(run):
    patient = replace(A, retries=3, backoff_s=60.0)
    engine = run(
        {"A": [FAILED], "S": [Answer(FAILED, lasts_s=5.0)]}, nodes=[patient, SIDE], jobs=2, fail_fast=True
    )
    assert (states(engine)["A"], states(engine)["S"][0]) == (("skipped", "S failed"), "failed")
    assert engine.record.wall_s < 60


def test_no_more_nodes_run_at_once_than_asked_for_and_they_start_a_little_apart(run):
    nodes = [Node(name, name, ()) for name in "PQRS"]
    engine = run({node.id: [Answer(DONE, lasts_s=2.0)] for node in nodes}, nodes=nodes, jobs=3)
    assert engine.launcher.starts() == [(0.0, "P"), (0.1, "Q"), (0.2, "R"), (2.0, "S")]
    alone = run({node.id: [Answer(DONE, lasts_s=0.01)] for node in nodes}, nodes=nodes, jobs=1)
    assert alone.launcher.starts() == [(0.0, "P"), (0.01, "Q"), (0.02, "R"), (0.03, "S")], (
        "one at a time is apart"
    )


def test_condition_that_is_not_met_leaves_out_what_needs_it_and_is_remembered(run):
    conditional, needs = Node("A", "A", (), params={"condition": "{}"}), B
    can_do_without = Node("C", "C", ("A",), optional=("A",))
    engine = run({"A": [UNMET], "C": [DONE]}, nodes=[conditional, needs, can_do_without])
    assert states(engine) == {
        "A": ("skipped", "its condition was not met"),
        "B": ("skipped", "A was skipped"),
        "C": ("complete", ""),
    }
    words = [engine.journal.history.recall(engine.results.prints[name].key)["unmet"] for name in "AB"]
    assert words == ["its condition was not met", "A was skipped"]
    assert ("B", "skipped") in engine.display.states


def test_condition_that_was_not_met_before_leaves_out_what_needs_it_now(run):
    engine = run({}, decisions={"A": Decision("A", "skip", "not met", is_unmet=True)})
    assert states(engine)["B"] == ("skipped", "A was skipped")


def test_node_that_cannot_do_without_its_optional_input_is_left_out(run):
    lacking = {**FAILED, "lacks_inputs": True}
    optional = replace(B, optional=("A",))
    engine = run({"A": [UNMET], "B": [{**lacking}]}, nodes=[A, optional])
    assert states(engine)["B"] == ("skipped", "A was skipped")
    assert engine.record.node("B").error is None
    failing = run({"A": [UNMET], "B": [FAILED]}, nodes=[A, optional])
    assert states(failing)["B"][0] == "failed", "for another reason"
    there = run({"A": [DONE], "B": [lacking]}, nodes=[A, optional])
    assert states(there)["B"][0] == "failed", "its input was there"


def test_node_over_its_time_limit_is_told_to_end_then_killed_and_that_is_why_it_failed(run):
    limited = replace(A, timeout_s=10.0)
    engine = run(
        {"A": [Answer({**FAILED, "is_preempted": True}, lasts_s=99.0, heeds=False)]}, nodes=[limited]
    )
    [(asked, *_), (killed, *_)] = engine.launcher.signals
    assert [signum for *_, signum in engine.launcher.signals] == [signal.SIGTERM, signal.SIGKILL]
    assert 10 < asked <= 10.5
    assert asked + 10 < killed <= asked + 10.5
    assert engine.record.node("A").error == {
        "message": "exceeded its time limit of 10 s", "hint": "", "where": ""
    }  # fmt: skip


def test_process_that_someone_stopped_is_killed(run, monkeypatch):
    looked_at = []
    monkeypatch.setattr(engines, "is_stopped", lambda pid: bool(looked_at.append(pid)) or True)
    engine = run({"A": [Answer(DONE, lasts_s=99.0)]}, nodes=[A])
    assert engine.record.node("A").error["message"] == "was stopped (SIGSTOP) for 30 s and not continued"
    assert set(looked_at) == {os.getpid()}
    assert engine.launcher.signals[0][2] == signal.SIGKILL


def test_interrupt_ends_what_runs_and_starts_nothing_more(begin):
    waits = replace(SIDE, retries=3, backoff_s=60.0)
    engine = begin({"A": [Answer(DONE, lasts_s=9.0)], "S": [FAILED]}, nodes=[A, B, waits], jobs=2)
    engine.display.on_tick = lambda: (
        engine.launcher.now >= BEGAN + 3 and not engine.signals.count and engine.signals()
    )
    engine.run()
    assert states(engine) == dict.fromkeys("ABS", ("skipped", "interrupted"))
    assert engine.interrupted
    assert engine.is_cut_short
    assert [(node, signum) for _, node, signum in engine.launcher.signals] == [("A", signal.SIGTERM)]
    assert engine.record.wall_s < 9
    assert not engine.launcher.is_killed
    ended = {"attempt": 1, "why": "interrupted", "node": "A", "state": "skipped"}
    events = (engine.journal.history.folder(engine.record.run_id) / "events.jsonl").read_text("utf-8")
    assert any(ended.items() <= json.loads(line).items() for line in events.splitlines())


def test_an_interrupt_after_the_last_result_cuts_nothing_short(begin, monkeypatch):
    engine = begin({"A": [DONE], "B": [DONE]})
    monkeypatch.setattr(
        engine.display,
        "changed",
        lambda record, entry: (entry.id, entry.state) == ("B", "complete") and engine.signals(),
    )
    engine.run()
    assert [state for state, _ in states(engine).values()] == ["complete", "complete"]
    assert engine.interrupted
    assert not engine.is_cut_short


def test_second_interrupt_does_not_wait(begin):
    engine = begin({"A": [Answer(DONE, lasts_s=9.0, heeds=False)]})
    engine.display.on_tick = engine.signals
    engine.run()
    assert engine.launcher.is_killed
    assert engine.interrupted
    assert states(engine) == dict.fromkeys("AB", ("skipped", "interrupted"))


def test_interrupts_that_another_thread_counts_end_and_then_kill(begin):
    engine = begin({"A": [Answer(DONE, lasts_s=9.0, heeds=False)]})

    def count():
        engine.signals.count += 1

    engine.display.on_tick = count
    engine.run()
    assert [signum for *_, signum in engine.launcher.signals] == [signal.SIGTERM]
    assert engine.launcher.is_killed
    assert engine.interrupted


def test_hopeless_node_is_told_to_end_and_leaves_out_what_needs_it_and_nothing_else(begin):
    told = {"A": "after epoch 2"}
    engine = begin(
        {"A": [Answer(DONE, lasts_s=9.0)], "S": [Answer(DONE, lasts_s=5.0)]},
        nodes=[A, B, SIDE],
        jobs=2,
        hopeless=lambda node: told.get(node.id, "") if engine.launcher.now > BEGAN + 2 else "",
    )
    engine.run()
    why = "pruned after epoch 2"
    assert states(engine) == {"A": ("skipped", why), "B": ("skipped", why), "S": ("complete", "")}
    assert [(node, signum) for _, node, signum in engine.launcher.signals] == [("A", signal.SIGTERM)]
    assert engine.pruned
    assert not engine.interrupted
    conclude(engine.record, pruned=engine.pruned)
    assert (engine.record.state, engine.record.exit_code) == ("pruned", 130)


def test_node_that_was_done_before_the_signal_is_not_pruned(begin):
    engine = begin(
        {"A": [Answer(DONE, lasts_s=3.0, heeds=False)], "B": [DONE]},
        hopeless=lambda node: "after epoch 2" if node.id == "A" else "",
    )
    engine.run()
    assert [state for state, _ in states(engine).values()] == ["complete", "complete"]
    assert not engine.pruned


def test_interrupt_counts_more_than_pruning(begin):
    engine = begin({"A": [Answer(DONE, lasts_s=9.0)]}, hopeless=lambda _: "after epoch 2")
    engine.display.on_tick = lambda: engine.signals.count or engine.signals()
    engine.run()
    conclude(engine.record, interrupted=engine.interrupted, pruned=engine.pruned)
    assert engine.record.state == "interrupted"


def test_failure_counts_more_than_pruning(begin):
    engine = begin(
        {"A": [Answer(DONE, lasts_s=9.0)], "S": [FAILED]},
        nodes=[A, B, SIDE],
        jobs=2,
        hopeless=lambda node: "after epoch 2" if node.id == "A" else "",
    )
    engine.run()
    conclude(engine.record, pruned=engine.pruned)
    assert (engine.record.state, engine.record.exit_code) == ("failed", 1)


def test_process_that_ends_without_a_result_is_described_by_how_it_ended(run):
    engine = run({"A": [Answer(None, code=-9, peak_bytes=2**30)]}, nodes=[A])
    assert engine.record.node("A").error["message"] == (
        "killed (SIGKILL; its memory peaked at 1.0 GiB): by a person, or by the system for lack of memory"
    )


RESOLVER = Node("A", "Resolver", (), is_resolver=True)
NOTHING = {"state": "complete", "execution_id": None, "outputs": {}}


@pytest.mark.parametrize(
    ("node", "is_kept"),
    [
        (RESOLVER, False),
        (replace(RESOLVER, finds_reference="passed"), True),
        (replace(RESOLVER, found=""), True),
    ],
)
def test_resolver_that_found_nothing_says_so_and_is_remembered_where_that_can_be_foreseen(run, node, is_kept):
    engine = run({"A": [NOTHING]}, nodes=[node])
    assert states(engine)["A"] == ("complete", "found nothing")
    assert (engine.journal.history.recall(engine.results.prints["A"].key) is not None) is is_kept


def test_what_a_resolver_found_now_is_part_of_what_follows(begin):
    found = replace(RESOLVER, found="what the plan foresaw")
    engine = begin(
        {"A": [{**DONE, "why": "looked again"}], "B": [DONE]}, nodes=[found, B, Node("C", "C", ())]
    )
    engine.launcher._answers["C"] = [DONE]
    before = dict(engine.results.prints)
    engine.run()
    assert engine.record.node("A").why == "looked again"
    assert engine.results.prints["A"].parts["external:artifacts that it finds"] == found_key(MODEL)
    assert engine.record.node("B").key == engine.results.prints["B"].key != before["B"].key
    assert engine.results.prints["C"] == before["C"]
    kept = engine.journal.history.last_fingerprints("toy")
    assert kept["B"] == engine.results.prints["B"]
    failing = begin({"A": [DONE], "B": [FAILED]}, nodes=[found, B])
    failing.run()
    assert failing.record.node("B").key == failing.results.prints["B"].key != before["B"].key
    assert failing.record.node("A").key == failing.results.prints["A"].key
    same = begin({"A": [DONE]}, nodes=[replace(RESOLVER, found=found_key(MODEL))])
    same.run()
    assert same.results.prints["A"] == before["A"]


def test_progress_is_reported_in_a_few_words(begin):
    engine = begin({}, nodes=[A, SIDE], jobs=2)
    folder = engine.journal.history.folder(engine.record.run_id) / "progress"
    said = {"A": {"done": 1500, "total": 3000, "text": "loss 0.5"}, "S": {"done": 3, "text": "3 files"}}

    def told(name):
        return lambda: (folder / name).write_text(json.dumps(said[name]), "utf-8")

    engine.launcher._answers = {name: [Answer(DONE, lasts_s=2.0, does=told(name))] for name in said}
    engine.run()
    assert {"A": "1,500 of 3,000, loss 0.5", "S": "3 files"} in engine.display.progress
    assert engine.display.progress[-1] == {}


def test_somebody_is_reported_twice_a_second_that_the_run_is_alive(run):
    beats = []
    run({"A": [Answer(DONE, lasts_s=5.0)]}, nodes=[A], alive=lambda: beats.append(1))
    assert len(beats) == 10


def test_record_that_cannot_be_written_ends_the_run_in_words(begin, monkeypatch):
    engine = begin({"A": [DONE]})

    def full(record):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(engine.journal.history, "save", full)
    with pytest.raises(PipelineError) as error:
        engine.run()
    folder = engine.journal.history.folder(engine.record.run_id)
    assert str(error.value) == (
        f"{folder} cannot be written: No space left on device.\nhint: first make room on the disk"
    )


def test_launcher_that_dies_while_a_node_waits_for_its_next_try_fails_the_run(run):
    engine = run({"A": [FAILED]}, nodes=[replace(A, retries=2, backoff_s=60.0), B])
    assert (engine.record.node("A").state, engine.record.node("A").error["message"]) == (
        "failed",
        LOST.message,
    )
    assert states(engine)["B"] == ("skipped", "A failed")
    assert exit_code(engine.record) == 1


def test_launcher_that_is_gone_between_two_nodes_fails_the_one_that_was_due(run):
    engine = run({"A": [DONE], "B": [LOST]})
    assert [state for state, _ in states(engine).values()] == ["complete", "failed"]
    assert engine.record.node("B").error == {"message": LOST.message, "hint": "see engine.log", "where": ""}
    assert engine.display.states[-1] == ("B", "failed")


def test_retry_that_waits_for_another_node_to_end_does_not_keep_the_engine_busy(begin, monkeypatch):
    answers = {"A": [FAILED, DONE], "C": [Answer(DONE, lasts_s=60.0)]}
    engine = begin(answers, nodes=[replace(A, retries=1, backoff_s=1.0), Node("C", "C", ())])
    waits, receive = [], engine.launcher.receive

    def counted(timeout_s):
        waits.append(timeout_s)
        assert len(waits) < 500
        return receive(timeout_s)

    monkeypatch.setattr(engine.launcher, "receive", counted)
    engine.run()
    assert engine.launcher.starts() == [(0.0, "A"), (1.0, "C"), (61.0, "A")]
    assert min(waits) > 0
    assert [node.state for node in engine.record.nodes] == ["complete", "complete"]


def test_state_that_a_resumed_run_had_begun_stays_though_it_is_asked_to_run(begin):
    for was_begun in (True, False):
        engine = begin({"A": [FAILED]}, nodes=[A], decisions={"A": Decision("A", "run", "", is_forced=True)})
        engine.record.node("A").started_s = 3.0 if was_begun else None
        kept = engine.results.state_folder("A")
        kept.mkdir(parents=True, exist_ok=True)
        engine.run()
        assert kept.exists() is was_begun


def test_result_of_an_earlier_run_is_enough_for_what_follows(run):
    engine = run({"B": [DONE]}, decisions={"A": Decision("A", "reuse", "cached")})
    assert engine.launcher.starts() == [(0.0, "B")]
    assert engine.record.node("B").state == "complete"


def test_reason_why_a_node_ran_is_kept_beside_that_it_is_not_cached(begin):
    engine = begin(
        {"A": [{**DONE, "why": "model.py changed"}]}, nodes=[A], changes_since=lambda _node: ["b.csv changed"]
    )
    engine.run()
    assert engine.record.node("A").why == (
        "model.py changed; not cached: its code or data changed while it ran: b.csv changed"
    )


def test_failed_node_before_an_earlier_result_keeps_what_comes_from_that_from_running(run):
    last = Node("C", "C", ("B",))
    engine = run({"A": [FAILED]}, nodes=[A, B, last], decisions={"B": Decision("B", "reuse", "cached")})
    assert states(engine)["C"] == ("skipped", "A failed")
