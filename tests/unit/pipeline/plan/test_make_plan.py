"""What a plan is made from."""

import os

import pytest
from fingerprints import fingerprints

from slipway.components.ingest.blocks import FileError
from slipway.pipeline.config import WorkloadChoice, read_assignments
from slipway.pipeline.errors import PipelineError
from slipway.pipeline.fingerprint.fingerprint import explain
from slipway.pipeline.plan import make_plan as planning
from slipway.pipeline.plan import node_fingerprints
from slipway.pipeline.plan.make_plan import Plan, changes_since, make_plan
from slipway.pipeline.plan.run_request import pipeline_request, workload_request
from slipway.pipeline.runs.graph import Graph, Node
from slipway.pipeline.runs.history import History, result_of
from slipway.pipeline.runs.record import NodeRecord, RunRecord
from slipway.pipeline.runs.result_files import kept_files

GRAPH = Graph("taxi", (Node("Ingest", "Ingest", ()), Node("Trainer", "Trainer", ("Ingest",))))


@pytest.fixture
def asked(project, tmp_path):
    path = project / "workloads/taxi/workload.yaml"
    return workload_request(WorkloadChoice(path), output=tmp_path, beam_args=())


@pytest.mark.parametrize(
    ("state", "action", "why"),
    [
        ("failed", "run", "is damaged: it is not what Ingest wrote"),
        ("complete", "reuse", "cached from run-0"),
    ],
)
def test_what_a_node_took_that_failed_is_read_whole_in_the_next_plan(asked, state, action, why):
    data = asked.output / "examples" / "data"
    data.parent.mkdir(parents=True)
    data.write_bytes(b"12345")
    outputs = {"examples": [{"uri": str(data.parent), "type": "Examples", "properties": {}}]}
    history, written_ns = History(asked.output), data.stat().st_mtime_ns
    key = fingerprints(GRAPH, roots=asked.code_roots, memo=None, baseline="")["Ingest"].key
    history.remember(
        key,
        result_of(
            NodeRecord("Ingest", outputs=outputs), RunRecord("run-0", "taxi"), files=kept_files(outputs)
        ),
    )
    record = history.new_run("taxi")
    record.nodes = [NodeRecord("Ingest", state="complete"), NodeRecord("Trainer", state=state)]
    history.save(record)
    data.write_bytes(b"1X345")
    os.utime(data, ns=(written_ns, written_ns))
    decision = make_plan(asked, history, GRAPH).decisions["Ingest"]
    assert decision.action == action
    assert decision.why.endswith(why)


def test_graph_of_a_wheel_that_was_built_anew_is_compiled_anew(asked, monkeypatch):
    keys = []
    for digest in ("aa", "bb"):
        monkeypatch.setattr(
            node_fingerprints, "installed_version", lambda digest=digest: {"slipway": f"0.1.0 ({digest})"}
        )
        monkeypatch.setattr(planning, "stack_versions", node_fingerprints.stack_versions.__wrapped__)
        keys.append(planning.graph_key(asked))
    assert keys[0] != keys[1]


def test_graph_is_compiled_anew_once_a_file_is_there_that_a_setting_names(project, tmp_path):
    file = tmp_path / "words.txt"
    sets = read_assignments([f"description={file}", f"push.destination={tmp_path}/serving"])
    choice = WorkloadChoice(project / "workloads/taxi/workload.yaml", sets)
    asked = workload_request(choice, output=tmp_path, beam_args=())
    key = planning.graph_key(asked)
    (tmp_path / "serving").mkdir()
    assert planning.graph_key(asked) == key, "runs make folders"
    file.touch()
    assert planning.graph_key(asked) != key


def test_graph_is_compiled_anew_once_a_folder_is_there_that_the_model_is_given(project, tmp_path):
    folder = tmp_path / "words"
    sets = read_assignments([f"train.hyperparameters.words={folder}", "train.model=os.path.join"])
    choice = WorkloadChoice(project / "workloads/taxi/workload.yaml", sets)
    asked = workload_request(choice, output=tmp_path, beam_args=())
    key = planning.graph_key(asked)
    folder.mkdir()
    assert planning.graph_key(asked) != key, "its content counts from now on"


@pytest.mark.parametrize(("device", "is_anew"), [("tpu", True), ("cpu", False)])
def test_graph_with_a_preflight_is_compiled_anew_once_another_compiler_is_there(
    project, tmp_path, monkeypatch, device, is_anew
):
    """Its versions are a setting of the node; else the answer of the earlier one would be taken."""
    sets = read_assignments(["train.preflight=true", f"train.device={device}", "train.tpu=v5e-8"])
    choice = WorkloadChoice(project / "workloads/taxi/workload.yaml", sets)
    asked = workload_request(choice, output=tmp_path, beam_args=())
    key = planning.graph_key(asked)
    monkeypatch.setattr(planning, "compiler_versions", lambda: {"libtpu": "0.0.99"})
    assert (planning.graph_key(asked) != key) is is_anew


def test_code_is_not_parsed_for_a_graph_where_none_is_stored(asked, monkeypatch):
    history = History(asked.output)
    with monkeypatch.context() as counting:
        counting.setattr(planning, "graph_key", lambda _: pytest.fail("looked up a key"))
        assert planning.known_graph(asked, history) is None
    planning.keep_graph(asked, history, GRAPH, key=planning.graph_key(asked))
    assert planning.known_graph(asked, history) == GRAPH


@pytest.mark.parametrize("kind", [PipelineError, FileError], ids=["on disk", "in a store"])
def test_what_can_no_longer_be_read_when_a_node_ends_only_keeps_its_result_from_the_cache(
    asked, monkeypatch, kind
):
    history = History(asked.output)
    plan = Plan(GRAPH, fingerprints(GRAPH, roots=asked.code_roots, memo=None, baseline=""), {}, "", "")
    assert changes_since(asked, plan, history, "Trainer") == []

    def gone(*_, **__):
        raise kind("gs://bucket/*.csv matches no file")

    monkeypatch.setattr(planning, "own_parts", gone)
    assert changes_since(asked, plan, history, "Trainer") == ["some can no longer be read"]


def test_another_keras_for_a_pipeline_of_ones_own_runs_its_nodes_again(asked, tmp_path, monkeypatch):
    """Otherwise whoever sets the variable because a node failed gets the model of the other Keras again."""
    history, graph = History(tmp_path), Graph("own", (Node("Trainer", "Trainer", ()),))
    own = pipeline_request("own:create", parameters={}, output=tmp_path, beam_args=())
    for variable in ("TF_USE_LEGACY_KERAS", "KERAS_BACKEND"):
        monkeypatch.delenv(variable, raising=False)
    before = make_plan(own, history, graph).prints["Trainer"]

    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")
    now = make_plan(own, history, graph)
    assert explain(now.prints["Trainer"], before) == ["TF_USE_LEGACY_KERAS 1 added"]
    assert changes_since(own, now, history, "Trainer") == []
    ours = make_plan(asked, history, GRAPH).prints["Trainer"]
    assert "stack:TF_USE_LEGACY_KERAS" not in ours.parts


@pytest.mark.parametrize("has_later", [False, True])
def test_a_resumed_run_is_compared_with_a_model_that_was_blessed_since(asked, monkeypatch, has_later):
    graph = Graph(
        "taxi",
        (
            Node(
                "Baseline", "Resolver", (), is_resolver=True, finds_baseline=True, outputs={"model": "Model"}
            ),
            Node("Trainer", "Trainer", (), outputs={"model": "Model"}),
            Node("Evaluator", "Evaluator", ("Baseline", "Trainer")),
            Node("ModelGate", "ModelGate", ("Evaluator",)),
            Node("Pusher", "Pusher", ("ModelGate", "Trainer")),
        ),
    )
    monkeypatch.setattr(planning, "has_execution", lambda _store, _number: True)
    history = History(asked.output)

    def done(node, *, key, number):
        made = {
            "uri": str(asked.output),
            "type": next(iter(node.outputs.values()), "Other"),
            "properties": {},
        }
        outputs = {"it": [made]}
        return NodeRecord(node.id, node.type, "complete", outputs=outputs, key=key, execution_id=number)

    old, new = (history.new_run("taxi", run_id=f"20261120-00000{n}-0001") for n in (1, 2))
    prints = make_plan(asked, history, graph).prints
    old.baseline, old.state, old.blessed = "none", "failed", True
    for number, node in enumerate(graph.nodes[:4], 1):
        entry = done(node, key=prints[node.id].key, number=number)
        old.nodes.append(entry)
        history.remember(entry.key, result_of(entry, old, files={}))
    old.nodes.append(NodeRecord("Pusher", "Pusher", "failed"))
    new.state, new.blessed = "complete", True
    new.nodes = [done(graph["Trainer"], key="of the later model", number=9)]
    for each in (old, new) if has_later else (old,):
        history.save(each)
    old.resumed = 1
    decisions = make_plan(asked, history, graph, resumed=old).decisions
    assert [each for each in decisions if decisions[each].action == "run"] == (
        ["Baseline", "Evaluator", "ModelGate", "Pusher"] if has_later else ["Pusher"]
    )
