"""What is taken from the cache, and what never is."""

import contextlib
import itertools
import sqlite3
from pathlib import Path

import pytest

from slipway.pipeline.config import read_parameters
from slipway.pipeline.engine.local_run import execute
from slipway.pipeline.plan.run_request import again, pipeline_request
from slipway.pipeline.screen.display import RunDisplay
from slipway.pipeline.screen.wording import DONE_BEFORE

pytestmark = pytest.mark.slow


@pytest.fixture
def run(in_process, watcher, warm):
    """Runs a toy pipeline, or goes on with a run of it; TFX is imported once."""

    def call(name="", *, resumed=None, sets=()):
        request = (
            again(resumed, jobs=None)
            if resumed
            else pipeline_request(
                f"toy_pipeline:{name}",
                parameters=read_parameters(sets),
                output=in_process.output,
                beam_args=[],
            )
        )
        return execute(request, display=watcher, resumed=resumed, warm=warm)

    return call


# ML Metadata's schema 10: the execution of a node in a run, by the names of their contexts.
OF_A_NODE = """
    SELECT Execution.id, Execution.name FROM Execution
    JOIN Association AS a ON a.execution_id = Execution.id JOIN Context AS run ON run.id = a.context_id
    JOIN Association AS b ON b.execution_id = Execution.id JOIN Context AS node ON node.id = b.context_id
    WHERE run.name = ? AND node.name = ?
"""
CACHE_CONTEXT = """
    SELECT Type.name FROM Association JOIN Context ON Context.id = Association.context_id
    JOIN Type ON Type.id = Context.type_id
    WHERE Association.execution_id = ? AND Type.name = 'execution_cache'
"""
EVENTS = "SELECT Event.type, uri FROM Event JOIN Artifact ON Artifact.id = artifact_id WHERE execution_id = ?"
PROPERTIES = "SELECT name, coalesce(string_value, int_value) FROM ExecutionProperty WHERE execution_id = ?"
EVENT_NAMES = {3: "INPUT", 4: "OUTPUT", 5: "INTERNAL_INPUT", 6: "INTERNAL_OUTPUT"}


def events(store, execution):
    return {(EVENT_NAMES[kind], uri) for kind, uri in store.execute(EVENTS, (execution,))}


def parameters(store, execution):
    found = dict(store.execute(PROPERTIES, (execution,)))
    return {name: value for name, value in found.items() if not name.startswith("__")}


def running(toy):
    """How many executions say that they run."""
    with contextlib.closing(sqlite3.connect(toy.output / "metadata.db")) as store:
        return store.execute("SELECT count(*) FROM Execution WHERE last_known_state = 2").fetchone()[0]


def made(record):
    return {node.id: node.outputs["made"][0]["uri"] for node in record.nodes if "made" in node.outputs}


def test_each_node_keeps_its_own_result_and_one_that_may_not_be_cached_only_for_its_run(in_process, run):
    failed = run("draws")
    drawn = made(failed)
    assert (failed.state, len(set(drawn.values()))) == ("failed", 2)
    in_process.get_well()
    whole = run(resumed=failed)
    assert whole.state == "complete"
    assert made(whole).items() > drawn.items(), "what the run had done is kept, by who made it"
    assert len(in_process.lines("drawn")) == 2

    anew = run("draws")
    assert {node.why for node in anew.nodes} == {"its pipeline has enable_cache=False"}
    assert len(in_process.lines("drawn")) == 4

    (in_process.folder / "cached").touch()
    same = run("draws")
    assert {node.state for node in same.nodes} == {"cached"}
    assert made(same) == made(anew)

    damaged = Path(made(same)["First"])
    damaged.write_text("x" * damaged.stat().st_size)
    mended = run("draws")
    assert {node.id: node.state for node in mended.nodes} == {
        "First": "complete",
        "Second": "cached",
        "Last": "complete",
    }
    assert mended.node("First").why == f"{damaged} is damaged: it is not what First wrote"


def test_what_a_failed_run_made_anew_is_not_taken_with_earlier_results_of_what_it_replaced(in_process, run):
    (in_process.folder / "cached").touch()
    (in_process.folder / "well").touch()
    whole = run("draws")
    Path(made(whole)["First"]).unlink()
    (in_process.folder / "well").unlink()
    failed = run("draws")
    assert {node.id: node.state for node in failed.nodes} == {
        "First": "complete",
        "Second": "cached",
        "Last": "failed",
    }
    in_process.get_well()
    after = run("draws")
    assert {node.id: node.why for node in after.nodes} == {
        "First": f"cached from {failed.run_id}",
        "Second": f"cached from {whole.run_id}",
        "Last": f"First ran again in {failed.run_id}",
    }


def test_store_that_was_moved_away_makes_runs_begin_afresh_beside_what_lies_there(in_process, run):
    before = run("one")
    [old] = made(before).values()
    Path(old).write_text("of the old store")
    store = in_process.output / "metadata.db"
    store.rename(store.with_name("old.db"))
    after = run("one")
    assert (after.node("Make").state, after.node("Make").why) == (
        "complete",
        "metadata.db does not know its result",
    )
    [new] = made(after).values()
    assert (Path(old).read_text(), Path(new).read_text()) == ("of the old store", "a")
    assert after.node("Make").execution_id > before.node("Make").execution_id
    # An older copy is put back in its place: it knows neither.
    store.unlink()
    store.with_name("old.db").rename(store)
    assert run("one").node("Make").execution_id > after.node("Make").execution_id


def test_what_follows_a_resolver_is_cached_while_it_finds_the_same(in_process, run):
    first = run("follow")
    same = run("follow")
    assert [node.state for node in same.nodes] == ["cached"] * 3
    other = run("follow", sets=["word=b"])
    assert [node.state for node in other.nodes] == ["complete"] * 3
    assert Path(made(other)["Use"]).read_text() == "b"
    # What Make has made for the first word is not the latest any more.
    back = run("follow")
    assert [node.state for node in back.nodes] == ["cached"] * 3
    assert made(back) == {"Make": made(first)["Make"], "Use": made(other)["Use"]}

    # What is cached is told in ML Metadata as TFX's own cache tells it.
    with contextlib.closing(sqlite3.connect(in_process.output / "metadata.db")) as store:
        [[execution, name]] = store.execute(OF_A_NODE, (same.run_id, "follow.Make"))
        assert name
        assert parameters(store, execution) == {"text": "a"}
        [[execution, _]] = store.execute(OF_A_NODE, (same.run_id, "follow.Use"))
        assert events(store, execution) == {
            ("INPUT", made(first)["Make"]),
            ("OUTPUT", made(first)["Use"]),
        }
        assert [kind for (kind,) in store.execute(CACHE_CONTEXT, (execution,))] == ["execution_cache"]
        [[execution, _]] = store.execute(OF_A_NODE, (same.run_id, "follow.Latest"))
        assert {kind for kind, _ in events(store, execution)} == {"INTERNAL_OUTPUT"}


@pytest.mark.parametrize("name", ["infer", "train"])
def test_the_latest_blessed_model_of_a_pipeline_whose_runs_are_not_known_here_is_looked_up(
    in_process, run, warm, tmp_path, name
):
    """Of another name, or of the same one with an output folder of its own; the metadata store is one."""
    asked = {"name": name, "store": str(in_process.output / "metadata.db")}
    told = []
    for word in ("one", "three", "three"):
        run("train", sets=[f"word={word}"])
        request = pipeline_request("toy_pipeline:infer", parameters=asked, output=tmp_path, beam_args=[])
        told.append(execute(request, display=RunDisplay(), warm=warm))
    assert [Path(made(each)["Infer"]).read_text() for each in told] == ["one", "three", "three"]
    assert [node.state for node in told[-1].nodes] == ["cached"] * 2


def test_the_latest_blessed_model_that_only_inference_uses_is_looked_up_although_the_pipeline_trains(run):
    """The next run uses it, as in TFX's own runner: none is compared with itself here."""
    for word in ("one", "two"):
        run("train_and_infer", sets=[f"word={word}"])
        again = run("train_and_infer", sets=[f"word={word}"])
        assert Path(made(again)["Infer"]).read_text() == word
        assert {again.node(name).state for name in ("Fit", "Bless")} == {"cached"}
        same = run("train_and_infer", sets=[f"word={word}"])
        assert [node.state for node in same.nodes] == ["cached"] * 4


def test_a_model_that_is_made_anew_in_every_run_is_compared_with_that_of_the_run_before(in_process, run):
    """As of a query: all of them have the same key, which once stood for the first run's lookup for ever."""

    def compared_with(record):
        return Path(made(record)["Infer"]).read_text()

    in_process.get_well()
    first, second = run("nights"), run("nights")
    assert (compared_with(first), compared_with(second)) == ("nothing", first.run_id)
    (in_process.folder / "well").unlink()
    failed = run("nights")
    assert (failed.state, compared_with(failed)) == ("failed", second.run_id)
    in_process.get_well()
    whole = run(resumed=failed)
    assert (whole.state, compared_with(whole)) == ("complete", second.run_id), "not with itself"
    assert [node.id for node in whole.nodes if node.why != DONE_BEFORE] == ["Last"]
    assert compared_with(run("nights")) == failed.run_id


def test_a_model_of_what_a_resolver_finds_is_compared_with_that_of_the_run_before(in_process, run):
    """As of the latest spans: what the model will be made of is not known when the run is planned."""
    for before, word in itertools.pairwise(["nothing", "a", "b", "c", "d"]):
        night = run("rolling", sets=[f"word={word}"])
        assert (night.state, Path(made(night)["Infer"]).read_text()) == ("complete", before)
        same = run("rolling", sets=[f"word={word}"])
        assert [node.state for node in same.nodes if node.id != "Blessed"] == ["cached"] * 6


def test_a_model_that_was_blessed_by_runs_recorded_elsewhere_is_compared_with(in_process, warm, tmp_path):
    """As TFX's own runner leaves it in the store, or a run with another output folder."""

    def train(word, *, verdict, output):
        sets = {"word": word, "store": str(tmp_path / "metadata.db"), "verdict": verdict}
        request = pipeline_request("toy_pipeline:compare", parameters=sets, output=output, beam_args=[])
        return Path(made(execute(request, display=RunDisplay(), warm=warm))["Infer"]).read_text()

    ours, theirs = in_process.output, tmp_path / "theirs"
    assert train("one", verdict="1", output=ours) == "nothing"
    assert train("two", verdict="0", output=ours) == "one"
    assert train("three", verdict="1", output=theirs) == "one"
    assert train("four", verdict="0", output=ours) == "three"
    assert train("five", verdict="1", output=ours) == "three", "a run of ours has only read it"


def test_execution_whose_process_was_killed_is_closed_by_the_next_run(in_process, run):
    killed = run("remember")
    assert running(in_process) == 1
    in_process.get_well()
    assert run(resumed=killed).state == "complete"
    assert running(in_process) == 0
