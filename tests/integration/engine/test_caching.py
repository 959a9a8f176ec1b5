"""What is taken from the cache, and what never is."""

from pathlib import Path

import pytest

from pipeline.local import Warm
from pipeline.local.execution import execute
from pipeline.local.request import again, pipeline_request

pytestmark = pytest.mark.slow


@pytest.fixture
def run(in_process, watcher):
    """Runs a toy pipeline, or goes on with a run of it; TFX is imported once."""
    with Warm() as warm:

        def call(name="", *, resumed=None, sets=()):
            request = (
                again(resumed.target, jobs=None)
                if resumed
                else pipeline_request(
                    f"toy_pipeline:{name}", sets=sets, output=in_process.output, beam_args=[]
                )
            )
            return execute(request, display=watcher, resumed=resumed, warm=warm)

        yield call


def made(record):
    return {node.id: node.outputs["made"][0]["uri"] for node in record.nodes if node.outputs}


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
