"""Random pipelines, each run, changed, broken and resumed at random, against a plain model of what is right.

Guards what decides on reuse, as it works together over several runs: `decide` (above all its look at what a
result had read), the keys of `fingerprint_nodes` and `resolver_keys`, `_looking_each_time` and `with_found`
for resolvers, and in a run `Engine`, `CachedResults` and `take_up`. Doubles are only what surrounds them: the
processes and the metadata store (`Store`), and the code and files of the nodes.

Two rules hold. What a run shows was made from what it shows beside it: no evaluation of another model. And no
node runs whose result from the same inputs and code is there.

A failure names its seed; `play(SEED, tmp_path, monkeypatch)` alone repeats it.
"""

import contextlib
import itertools
import pickle
from dataclasses import dataclass, field, replace
from random import Random
from types import SimpleNamespace
from typing import ClassVar
from unittest.mock import Mock

import pytest
from tfx.proto.orchestration import pipeline_pb2

from slipway.pipeline.engine import journal, local_run, scheduler
from slipway.pipeline.engine.launcher import Exited
from slipway.pipeline.engine.tfx import resolver_lookup
from slipway.pipeline.engine.tfx.compile import Compiled
from slipway.pipeline.engine.tfx.read_graph import _looking_each_time
from slipway.pipeline.plan import make_plan
from slipway.pipeline.plan.run_request import pipeline_request
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.record import artifacts_in

HISTORIES, RUNS = 200, 8
FAILED = {"state": "failed", "message": "no", "hint": "", "where": ""}
UNMET = {"state": "skipped", "execution_id": None, "outputs": {}}
FOUND_NOTHING = {"state": "complete", "execution_id": None, "outputs": {}}


def copied(document):
    return pickle.loads(pickle.dumps(document))  # noqa: S301  (a tenth of the time of `deepcopy`)


class InMemory(History):
    """A history whose documents are copied, not written: thousands of runs take seconds."""

    kept: ClassVar[dict[str, object]] = {}

    def save(self, record):
        self.kept[f"{record.run_id}/run.json"] = copied(record)

    def _read(self, path, _leave_out):
        kept = self.kept.get(f"{path.parent.name}/{path.name}")
        return kept and copied(kept)

    def late_runs(self):
        # Ids tell seconds apart, in which all of these runs are made.
        return [run for run in self.runs() if run.resumed]

    def save_fingerprints(self, run_id, prints):
        self.kept[run_id] = dict(prints)

    def fingerprint_of(self, run, node_id):
        return self.kept[run.run_id].get(node_id) if run.run_id in self.kept else None

    def last_fingerprints(self, _workload):
        return {}  # they only explain

    def remember(self, key, entry):
        self.kept[key] = copied(entry)

    def recall(self, key):
        return copied(self.kept[key]) if key in self.kept else None

    def append_event(self, *_):
        pass


class Killed(BaseException):
    """Ends a run as SIGKILL does: nothing more is written."""


@dataclass
class Execution:
    """What a node did.

    `given` are the ids of its artifacts, its own or those it found, and `read` those of the nodes before it.
    `is_kept` is False where the code changed meanwhile, for what was made of that, and where the run was
    killed before it could note the result.
    """

    id: int
    node: str
    attempt: str
    code: int
    read: dict[str, list[int]]
    given: list[int]
    is_kept: bool
    is_blessed: bool
    settings: list[int]

    @property
    def run(self):
        return self.attempt.partition(".")[0]


@dataclass
class World:
    """A pipeline, the code of its nodes, and all that they ever made."""

    random: Random
    graph: Graph
    wanted: dict[str, str]
    """By the resolvers' names, the nodes whose latest artifact they find."""
    code: dict[str, int] = field(default_factory=dict)
    made: dict[int, Execution] = field(default_factory=dict)
    lost: set[int] = field(default_factory=set)
    edits: "itertools.count[int]" = field(default_factory=lambda: itertools.count(100))

    def chance(self, share):
        return self.random.random() < share

    def edit(self, code):
        """Change the code of a node; a resolver has none."""
        self.code[self.random.choice([node.id for node in self.graph.nodes if not node.is_resolver])] = code

    def found(self, node):
        """Return the artifacts that a resolver finds now."""
        if node.finds_baseline:
            return sorted(self.blessed())[-1:]
        return [each.id for each in self.made.values() if each.node == self.wanted[node.id]][-1:]

    def blessed(self):
        return {model for each in self.made.values() if each.is_blessed for model in each.read["Trainer"]}

    def is_met(self, node, read):
        """Return whether the condition is met, which depends on what the node reads."""
        return not node.has_condition or Random(f"{node.id} {sorted(read.items())}").random() < 0.6  # noqa: S311

    def is_anew(self, node):
        """Return whether a node is made anew in every run, or of such a one."""
        return bool(node.uncached) or any(map(self.is_anew, self.givers(node)))

    def ancestors(self, node):
        """Return the nodes whose code a node's result depends on."""
        return {node.id}.union(*map(self.ancestors, self.givers(node)))

    def givers(self, node):
        """Return the nodes of whose outputs a node's own are made."""
        ups = (self.graph[up] for up in node.upstream if up not in node.gates)
        return [up for up in ups if not up.is_resolver]


class Store:
    """The double of the fork server, with the metadata store, in one attempt at a run."""

    def __init__(self, world, request):
        self.world, self.request = world, request
        self.running, self.begun, self.current = {}, set(), {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def begin_compiling(self, order):
        self.attempt, self.planned = order.run_id, dict(self.world.code)

    def compiled(self, **_):
        self.graph, asked = compiled(self.world), self.request
        is_forced = asked.no_cache or asked.start
        self.forced = self.graph.select(start=asked.start, end=asked.end) if is_forced else ()
        return self.graph

    def settle(self, *_, **__):
        pass

    def published(self, attempts, **_):
        return {each.node: self.answer(each) for each in self.world.made.values() if each.attempt in attempts}

    def reuse(self, sources, **_):
        self.current |= {name: self.world.made[each["execution_id"]] for name, each in sources.items()}
        return dict(sources)

    def start(self, start):
        node = self.graph[start.node]
        ups = () if node.is_resolver else set(node.upstream).difference(node.gates).intersection(self.current)
        read = {up: self.current[up].given for up in ups}
        self.require_needed(node, read)
        self.running[node.id] = read
        self.begun.add(node.id)

    def receive(self, _timeout_s):
        """End one of the nodes that run, or none: others may start beside them."""
        world, name = self.world, self.world.random.choice([*self.running, None])
        name = "Baseline" if "Baseline" in self.running else name  # which takes no time
        if name is None:
            return []
        node, read = self.graph[name], self.running.pop(name)
        if world.chance(0.03):
            world.edit(next(world.edits))
        return [Exited(name, 0, 0, self.result(node, read))]

    def result(self, node, read):
        if self.world.chance(0.1) and not node.finds_baseline:
            is_gate = any(node.id in each.gates for each in self.graph.nodes)
            return {**FAILED, "verdict": {}} if is_gate else FAILED
        if not self.world.is_met(node, read):
            return UNMET
        found = self.world.found(node) if node.is_resolver else [len(self.world.made) + 1]
        return self.answer(self.execute(node, read, found)) if found else FOUND_NOTHING

    def execute(self, node, read, given):
        world, number = self.world, len(self.world.made) + 1
        code, givers = world.code[node.id], [each.id for each in world.givers(node)]
        is_kept = code == self.planned[node.id] and all(
            self.current[up].is_kept for up in givers if up in read
        )
        is_blessed = node.id == "Evaluator" and world.chance(0.7)
        done = Execution(
            number, node.id, self.attempt, code, read, given, is_kept, is_blessed, self.settings(node)
        )
        world.made[number] = self.current[node.id] = done
        if world.chance(0.03) and node.id != "Evaluator":  # a blessing counts once it is on record
            done.is_kept = False
            raise Killed
        return done

    def answer(self, done):
        [kind] = self.graph[done.node].outputs.values()
        properties = {"blessed": int(done.is_blessed)}
        given = [{"uri": f"store://{i}", "id": i, "type": kind, "properties": properties} for i in done.given]
        return {"state": "complete", "execution_id": done.id, "outputs": {"given": given}}

    def require_needed(self, node, read):
        """Hold up the second rule. Of several equal results, the last one is there."""
        if node.is_resolver or self.may_find_another(node):
            return
        is_alone = set(node.upstream).difference(node.gates) - read.keys()  # a condition left one out
        if is_alone and self.graph.upstream_of(node.upstream) & self.begun:
            return
        settings = self.settings(node)
        same = [
            each
            for each in self.world.made.values()
            if (each.node, each.code, each.read) == (node.id, self.planned[node.id], read)
            and each.is_kept
            and (each.settings == settings or not is_alone)
        ]
        run = self.attempt.partition(".")[0]
        if same and self.world.lost.isdisjoint(same[-1].given):
            is_asked_for = node.uncached or node.id in self.forced
            is_in_vain = same[-1].run == run or not is_asked_for
            assert not is_in_vain, f"{node.id} runs in {self.attempt}: {same[-1]} is there"

    def may_find_another(self, node):
        """Return whether a resolver before the node looks again, or looks at what is not over yet."""
        over = self.current.keys() - self.begun
        finders = [self.graph[up] for up in node.upstream if self.graph[up].is_resolver]
        return any((up.finds_baseline and up.id in self.begun) or set(up.looks_at) - over for up in finders)

    def settings(self, node):
        return [self.planned[each] for each in sorted(self.world.ancestors(node))]


def compiled(world):
    """Return the graph as a run finds it: with what each resolver would find now."""
    ir = pipeline_pb2.Pipeline()
    for node in world.graph.nodes:
        each = ir.nodes.add().pipeline_node
        each.node_info.id = node.id
        if wanted := world.wanted.get(node.id):
            each.inputs.inputs["given"].channels.add().artifact_query.type.name = f"Of{wanted}"
    return resolver_lookup.with_found(Compiled(ir, None, world.graph), runs=None).graph


def random_world(random):
    """Return up to seven nodes, before a Trainer whose models are compared with the last that was blessed."""
    names = [f"N{i}" for i in range(random.randint(3, 7))]
    resolvers = {name for name in names[1:] if random.random() < 0.15}
    wanted = {name: random.choice(sorted({*names} - resolvers)) for name in sorted(resolvers)}
    nodes = []
    for i, name in enumerate(names):
        ups = random.sample(names[:i], random.randint(0, min(i, 3)))
        nodes.append(random_node(random, name, ups, f"Of{name}", resolvers))
    if random.random() < 0.5:
        trainer = random_node(
            random, "Trainer", [random.choice(sorted(resolvers) or names)], "Model", resolvers
        )
        given = {"given": "Model"}
        baseline = Node("Baseline", "Resolver", (), is_resolver=True, finds_baseline=True, outputs=given)
        ups, given = ("Baseline", "Trainer"), {"given": "ModelBlessing"}
        evaluator = Node("Evaluator", "Evaluator", ups, outputs=given, optional=ups[:1])
        nodes = [baseline, *nodes, trainer, evaluator]
    graph = Graph("toy", _looking_each_time(nodes))
    return World(random, graph, wanted, dict.fromkeys(graph.ids, 0))


def random_node(random, name, ups, kind, resolvers):
    if name in resolvers:
        return Node(
            name,
            "Resolver",
            tuple(ups[:1]),
            is_resolver=True,
            outputs={"given": kind},
            optional=tuple(ups[:1]),
        )
    gates = [up for up in ups if up not in resolvers and random.random() < 0.15]
    return Node(
        name,
        "Component",
        tuple(ups),
        params={"condition": "{}"} if {*ups} - {*gates} and random.random() < 0.2 else {},
        uncached="it reads a database" if random.random() < 0.1 else "",
        gates=tuple(gates),
        optional=tuple(up for up in ups if up in gates or up in resolvers or random.random() < 0.3),
        outputs={"given": kind},
    )


def require_one_history(world, record, planned):
    """Hold up the first rule."""
    shown = {
        e.id: world.made[e.execution_id] for e in record.nodes if e.is_done and e.execution_id is not None
    }
    is_whole = record.exit_code in (0, 3) and not any(entry.is_stop for entry in record.nodes)
    for entry in record.nodes:
        node = world.graph[entry.id]
        ups = set(node.upstream).difference(node.gates)
        beside = {up: shown[up].given for up in ups if up in shown}
        if node.finds_baseline:
            continue
        if entry.id in shown and not node.is_resolver:
            made = shown[entry.id]
            assert made.code == planned[entry.id] or made.run == record.run_id, f"{entry.id} is of other code"
            read = {up: given for up, given in made.read.items() if up != "Baseline"}
            beside.pop("Baseline", None)
            assert read == beside, f"{entry.id} was made of {read} and is shown beside {beside}"
            assert world.is_met(node, made.read), f"{entry.id} is shown, and its condition is not met"
        elif entry.state == "skipped" and is_whole and not entry.why.startswith("excluded"):
            absent = [
                up for up in node.upstream if record.node(up).state == "skipped" and up not in node.optional
            ]
            assert absent or not world.is_met(node, beside), (
                f"{entry.id} is left out, and its condition is met"
            )
    for name, wanted in world.wanted.items():
        if name in shown and wanted in shown and wanted in before(world.graph, name):
            latest = world.found(world.graph[name])
            assert shown[name].given == latest, f"{name} found {shown[name].given}, the latest is {latest}"
    if "Evaluator" in shown:
        require_latest_baseline(world, shown["Evaluator"])


def before(graph, name):
    return graph.ids[: graph.ids.index(name)]


def require_latest_baseline(world, judged):
    """Hold up the first rule for what a resolver of the latest blessed model had found.

    That is the last other model; twins, of the same settings, need not count. Where a model is made anew in
    each run, all are twins, and count. One that is judged again may meet itself, see docs/any-pipeline.md.
    """
    [model] = judged.read["Trainer"]
    others = sorted(world.blessed() - {model})
    different = [each for each in others if world.made[each].settings != world.made[model].settings]
    right = [others[-1:]] if world.is_anew(world.graph["Trainer"]) else [others[-1:], different[-1:], [model]]
    assert judged.read.get("Baseline", []) in right, f"{model} was compared with {judged.read}, not {right}"


def play(seed, tmp_path, monkeypatch):
    """Make runs of one pipeline, each with other options, and changes between them."""
    random = Random(seed)  # noqa: S311
    world, asked, records = random_world(random), {}, []
    output = tmp_path / str(seed)
    plain = pipeline_request("toy:create", parameters={}, output=output, beam_args=())
    monkeypatch.setattr(InMemory, "kept", {})
    monkeypatch.setattr(make_plan, "_own_parts", lambda node, *_: {"code:it.py": str(world.code[node.id])})
    monkeypatch.setattr(
        make_plan,
        "no_longer_kept",
        lambda entry, **_: "gone" * any(each["id"] in world.lost for each in artifacts_in(entry["outputs"])),
    )
    monkeypatch.setattr(
        resolver_lookup,
        "_found",
        lambda _, node: (
            {"given": [SimpleNamespace(uri=f"store://{i}", id=i) for i in found]}
            if (found := world.found(node))
            else {}
        ),
    )
    for _ in range(RUNS):
        if world.chance(0.3):
            world.edit(random.randint(0, 2))
        if world.made and world.chance(0.1):
            name = random.choice(world.graph.ids)
            world.lost.update(each.id for each in world.made.values() if each.node == name)
        open_ = [r for r in records if r.state != "complete"]
        if open_ and world.chance(0.4):
            resumed = open_[-1]
            request = asked[resumed.run_id]
        else:
            resumed, request = None, random_request(random, plain, world.graph)
        store = Store(world, request)
        monkeypatch.setattr(local_run, "ForkServerClient", lambda *_, store=store, **__: store)
        with contextlib.suppress(Killed):
            record = local_run.execute(request, display=Mock(), resumed=resumed)
            require_one_history(world, record, store.planned)
        records = list(InMemory(output).runs())[::-1]
        asked.setdefault(records[-1].run_id, request)


def random_request(random, plain, graph):
    start = random.choice(graph.ids) if random.random() < 0.2 else None
    ends = sorted(graph.downstream_of([start] if start else graph.ids))
    return replace(
        plain,
        start=start,
        end=random.choice(ends) if random.random() < 0.2 else None,
        no_cache=random.random() < 0.1,
        jobs=random.randint(1, 3),
    )


@pytest.fixture
def quick(monkeypatch):
    """Nothing waits for a clock, a disk or a lock."""
    clock = itertools.count()
    for module in (scheduler, journal, local_run):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    monkeypatch.setattr(local_run, "History", InMemory)
    for name in ("at_work", "temporary_folder"):
        monkeypatch.setattr(local_run, name, lambda *_, **__: contextlib.nullcontext())


@pytest.mark.usefixtures("quick")
def test_what_a_run_shows_is_of_one_history_and_nothing_runs_in_vain(tmp_path, monkeypatch):
    for seed in range(HISTORIES):
        try:
            play(seed, tmp_path, monkeypatch)
        except AssertionError as error:
            error.add_note(f"in the history of seed {seed}")
            raise
