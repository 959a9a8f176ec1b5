"""What TFX's DSL offers, run by this engine; and that the engine takes and leaves nothing of its own."""

import gc
import json
import tracemalloc
from pathlib import Path

import pytest

from slipway.pipeline.config import read_parameters
from slipway.pipeline.engine.local_run import execute
from slipway.pipeline.engine.processes.client import ForkServerClient, RefusedError
from slipway.pipeline.errors import UsageError
from slipway.pipeline.plan.run_request import pipeline_request
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.run_target import Order

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm_engine")]


def request_for(name: str, toy, *, sets=(), **options):
    return pipeline_request(
        f"toy_pipeline:{name}", parameters=read_parameters(sets), output=toy.output, beam_args=[], **options
    )


def text_of(record, node_id: str) -> str:
    [artifact] = record.node(node_id).outputs["made"]
    return Path(artifact["uri"]).read_text()


def test_conditions_importers_resolvers_and_parameters(in_process, watcher):
    yes = execute(request_for("features", in_process, jobs=4), display=watcher)
    assert yes.state == "complete"
    states = {node.id: (node.state, node.why) for node in yes.nodes if node.state != "complete"}
    assert states == {
        "IfNo": ("skipped", "its condition was not met"),
        "NeedsNo": ("skipped", "IfNo was skipped"),
    }
    assert text_of(yes, "MayUseNo") == "nothing"
    assert text_of(yes, "Either") == "yes"
    assert yes.node("Latest").why == "found nothing"
    assert in_process.lines("pushed") == ["imported"]

    made = in_process.lines("made")
    same = execute(request_for("features", in_process, jobs=4), display=watcher)
    assert {node.id: (node.state, node.why) for node in same.nodes if node.state == "skipped"} == {
        "IfNo": ("skipped", f"its condition was not met, as in {yes.run_id}"),
        "NeedsNo": ("skipped", f"IfNo was skipped, as in {yes.run_id}"),
    }
    # What a resolver will find is looked up before it runs: here, still nothing.
    assert [node.id for node in same.nodes if node.state == "complete"] == []
    assert in_process.lines("made") == made
    prints = json.loads((in_process.history.folder(same.run_id) / "fingerprints.json").read_text())
    assert "param:condition" in prints["IfNo"], "another condition is another node"
    assert "param:result_properties.split_names" in prints["Importer"], "so are an Importer's properties"

    no = execute(request_for("features", in_process, sets=["word=no", "count=5"], jobs=8), display=watcher)
    states = {node.id: node.state for node in no.nodes if node.state != "complete"}
    assert states == {"IfYes": "skipped", "Importer": "cached", "Push": "cached", "Latest": "cached"}
    assert (text_of(no, "MayUseNo"), text_of(no, "Either")) == ("no", "no")
    assert in_process.lines("made")[-2:] == ["no 5", "ordered 1"]
    assert in_process.lines("pushed") == ["imported"], "what is cached does not happen again"

    missing = execute(request_for("missing", in_process), display=watcher)
    assert missing.exit_code == 1
    assert (
        missing.node("Push").error["message"]
        == "could not start: its input 'value' needs 1 artifact and there are 0"
    )


def test_nodes_sleep_side_by_side(in_process, watcher):
    record = execute(request_for("sleepers", in_process, jobs=8), display=watcher)
    assert record.state == "complete"
    starts = [node.started_s for node in record.nodes]
    ends = [node.started_s + node.wall_s for node in record.nodes]
    assert max(starts) < min(ends), "all eight run at one moment"


def test_what_cannot_be_compiled_is_refused_in_words(in_process, tmp_path):
    history = History(in_process.output)
    with history.scratch() as folder, ForkServerClient(folder, temporary=folder / "tmp") as server:
        for name, sets, message in (
            ("broken", {}, r"toy_pipeline.py:\d+: KeyError: 'no such setting'"),
            ("leaves", {}, r"SystemExit: 3"),
            ("number", {}, "gave a int, not a TFX Pipeline"),
            ("nothing", {}, "toy_pipeline has no 'nothing'"),
            ("required", {}, "Parameter 'word' of required has no default"),
            ("features", {"wrod": "x"}, "features has no such parameter. Closest: 'word'"),
            ("features", {"count": "many"}, "--set count=many: must be a whole number"),
        ):
            request = request_for(name, in_process)
            order = Order(target=request.target, run_id="r", parameters=sets)
            with pytest.raises(UsageError, match=message) as refused:
                server.compile(order, tick=lambda: None)
            # Where the pipeline's own code raised, the log has more to tell.
            assert isinstance(refused.value, RefusedError) == (name in ("broken", "leaves"))


def test_runtime_parameter_may_be_0_or_empty_by_default(in_process, watcher):
    record = execute(request_for("falsy", in_process), display=watcher)
    assert record.state == "complete"
    assert in_process.lines("made") == [" 0"]


def test_pipeline_s_code_does_not_see_the_arguments_of_the_process_that_builds_it(in_process, watcher):
    assert execute(request_for("arguments", in_process), display=watcher).state == "complete"
    assert in_process.lines("made") == ["none 1"]


def test_a_pipeline_that_raises_while_it_is_built_leaves_its_log(toy):
    refused = toy.run("broken")
    assert refused.returncode == 2
    record = toy.record()
    assert (record.state, record.exit_code) == ("failed", 2)
    log = toy.history.folder(record.run_id) / "logs" / "engine.log"
    resume = f"python local_runner.py resume {record.run_id} --output {toy.output}"
    assert refused.stderr.splitlines()[-1] == f"hint: {resume}   # see {log}"
    assert "KeyError: 'no such setting'" in log.read_text()


def test_what_the_store_lost_is_not_reused_nor_what_follows(in_process, watcher):
    record = execute(request_for("chain", in_process), display=watcher)
    assert record.state == "complete"
    ids = [node.id for node in record.nodes]
    executions = {node.id: node.execution_id for node in record.nodes}
    request = request_for("chain", in_process)
    order = Order(target=request.target, run_id="later")
    with (
        History(in_process.output).scratch() as folder,
        ForkServerClient(folder, temporary=folder / "tmp") as server,
    ):
        server.compile(order, tick=lambda: None)
        sources = {
            n.id: {"run_id": record.run_id, "execution_id": n.execution_id, "outputs": n.outputs}
            for n in record.nodes
        }
        lost = {**sources["Node3"], "execution_id": 10**6}
        assert list(server.reuse({**sources, "Node3": lost}, tick=lambda: None)) == ids[:3]
        # Another store counts from 1 again: the same number stands for the execution of another node.
        swapped = {**sources["Node5"], "execution_id": executions["Node6"]}
        reused = server.reuse({**sources, "Node5": swapped}, tick=lambda: None)
        assert list(reused) == ids[:5]
        assert reused["Node2"]["outputs"] == record.node("Node2").outputs
        published = server.published(["unknown", record.run_id], tick=lambda: None)
        assert {node_id: result["execution_id"] for node_id, result in published.items()} == executions
        assert server.published(["later"], tick=lambda: None) == {}, "what was reused was not run"


def test_the_engine_stays_small_over_forty_nodes(in_process, watcher):
    sizes: dict[str, int] = {}
    # Made by the pipeline's lines, or read by them: this process also counts coverage, imports what it needs
    # once, and holds what other tests left in it.
    ours = [tracemalloc.Filter(True, pattern) for pattern in ("*/pipeline/*", "*/json/*")]

    def measure(node) -> None:
        if node.id in ("Node20", "Node39") and node.state == "complete":
            gc.collect()
            held = tracemalloc.take_snapshot().filter_traces(ours)
            sizes[node.id] = sum(each.size for each in held.statistics("filename"))

    watcher.on_change = measure
    tracemalloc.start()
    try:
        record = execute(request_for("forty", in_process, jobs=4), display=watcher)
    finally:
        tracemalloc.stop()
    assert [node.state for node in record.nodes] == ["complete"] * 40
    assert sizes["Node20"] > 0, "the filter finds nothing"
    assert sizes["Node39"] - sizes["Node20"] < 2**18
