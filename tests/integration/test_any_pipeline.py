"""What docs/any-pipeline.md says of TFX's constructs, row by row: run here, and as a compiled job."""

import shutil
from pathlib import Path

import pytest
from called import forked_servers

pytest.importorskip("kfp", reason="TFX brings kfp to Python 3.11 only")

from fingerprints import fingerprints

from slipway import run
from slipway.pipeline.cloud.commands import rehearse_request
from slipway.pipeline.cloud.rehearsal.services import ServiceName
from slipway.pipeline.commands.gc.gc import collect
from slipway.pipeline.engine.graphs import compile_graph
from slipway.pipeline.engine.processes.client import Server
from slipway.pipeline.errors import UsageError
from slipway.pipeline.plan.run_request import pipeline_request
from slipway.pipeline.root import PROJECT_ROOT
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.run_target import ImageModuleRun, Order

pytestmark = pytest.mark.slow

TOYS = PROJECT_ROOT / "tests" / "data" / "foreign"
PAGE = PROJECT_ROOT / "docs" / "any-pipeline.md"
# The rows of the page's table -> the toys that show them: constructs that run in one pipeline, or pipelines.
CONSTRUCTS = {
    "Components of functions, and values that they return": "value_artifact",
    "`Cond`, also on values; optional inputs; `union`": "condition",
    "Parameters that are another node's value": "placeholder",
    "`Importer`": "importer",
    "`Resolver` of the latest artifact": "resolver",
    "Components of classes, and of Beam": "beam_component",
    "Your own ExampleGen that queries a database": "query",
    "Stock components with a `module_file` that imports modules beside it; TFX's Pusher": "module_file",
    "Node ids with a slash": "slash",
    "`RuntimeParameter`": "runtime_parameter",
}
PIPELINES = {
    "A container component": "container",
    "Your own component that makes a `PushedModel`": "publishing",
    "InfraValidator": "infra",
    "A pipeline inside a pipeline": "nested",
    "`ForEach`": "loop",
}
REHEARSED = [name for name in CONSTRUCTS.values() if name != "condition"]


def rows():
    """The page's table: construct -> what it says of a run here, and of a rehearsal."""
    table = PAGE.read_text(encoding="utf-8").partition("| construct |")[2].partition("\n\n")[0]
    cells = (line.strip("|").split(" | ") for line in table.splitlines()[2:])
    return {name.strip(): (here.strip(), there.strip()) for name, here, there in cells}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The output folder, under which the toys have their root; the toys are imported from their own."""
    folder = tmp_path_factory.mktemp("any")
    (folder / "imported").mkdir()
    (folder / "imported" / "data").write_text("imported")
    for file in (TOYS / "beside").iterdir():
        shutil.copy(file, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(TOYS)
        yield folder


@pytest.fixture(scope="module")
def run_toy(place, warm):
    """Runs a toy here."""
    return lambda name: run(
        f"foreign_pipelines:{name}", output=place, parameters={"folder": place}, quiet=True, warm=warm
    )


@pytest.fixture(scope="module")
def runs(place, run_toy):
    """All constructs in one pipeline, run twice; in between, a module beside a `module_file` was edited."""
    first = run_toy("constructs").raise_for_state()
    (place / "foreign_words.py").write_text('WORD = "second"\n')
    return first, run_toy("constructs").raise_for_state()


def text_of(result, node, output="made"):
    [place] = result.outputs(node)[output]
    return Path(place).read_text()


def test_page_has_a_row_for_each_construct_that_is_tried():
    assert set(rows()) == {*CONSTRUCTS, *PIPELINES}


def test_constructs_run_here(runs):
    first, _ = runs
    states = {name: node.state for name, node in first.nodes.items() if node.state != "complete"}
    assert states == {"Unmet": "skipped"}
    made = {name: text_of(first, name) for name in ("Met", "Optional", "Union", "Placeholder", "train/Make")}
    assert made == {
        "Met": "yes", "Optional": "nothing", "Union": "yes", "Placeholder": "4", "train/Make": "a"
    }  # fmt: skip
    assert first.log("train/Make").is_file()
    assert text_of(first, "Keras") == "0 tensorflow"
    assert {name for name in CONSTRUCTS if not rows()[name][0].startswith("runs")} == set()


def test_edited_module_beside_a_module_file_counts_and_what_was_pushed_before_stays_served(runs, place):
    _, second = runs
    ran = {name for name, node in second.nodes.items() if node.state == "complete"}
    assert ran == {"Trainer", "Pusher", "Latest", "Ask"}
    assert second.nodes["Ask"].why == "the tables behind its query may have changed"
    served = [Path(each.pushed["path"]) for each in runs]
    assert [(path / "saved_model.pb").read_text() for path in served] == ["first", "second"]
    assert all(path.is_relative_to(place / "artifacts" / "toys" / "serving_model") for path in served)
    sweep = collect(place, keep=1, dry_run=True)
    assert {each.path for each in sweep.removals if each.kind == "artifact"}.isdisjoint(
        parent for path in served for parent in (path, *path.parents)
    )


def test_what_a_packed_module_file_imports_beyond_its_wheel_counts(place, warm, tmp_path):
    request = pipeline_request(
        "foreign_pipelines:constructs",
        parameters={"folder": str(place), "names": "module_file"},
        output=place,
        beam_args=[],
    )
    history = History(tmp_path)
    with (
        history.scratch() as folder,
        Server(folder, temporary=folder / "tmp", warm=warm, is_ours=False) as server,
    ):
        graph = compile_graph(request, server, history, folder=folder, run_id="plan", tick=lambda: None)
    prints = fingerprints(graph, roots=request.code_roots, memo=None, baseline="")
    code = {Path(part).name for part in prints["Trainer"].parts if part.startswith("code:")}
    assert {"foreign_trainer.py", "foreign_words.py", "__init__.py", "size.py"} <= code


def test_rehearsal_publishes_nothing_and_is_compared_with_the_local_run(runs, place, capfd, warm):
    request = pipeline_request(
        "foreign_pipelines:constructs",
        parameters={"folder": str(place), "names": ",".join(REHEARSED), "word": "yes"},
        output=place,
        beam_args=[],
    )
    served = sorted((place / "artifacts" / "toys" / "serving_model").iterdir())
    with forked_servers(lambda: warm):
        assert rehearse_request(request, jobs=None, root=None, service=ServiceName.VERTEX, again="") == 0
    assert sorted((place / "artifacts" / "toys" / "serving_model").iterdir()) == served
    record = next(History(place / "rehearsal").runs())
    assert Path(record.pushed["path"]).is_relative_to(place / "rehearsal" / "serving")
    assert (Path(record.pushed["path"]) / "saved_model.pb").read_text() == "second"
    told = capfd.readouterr().err
    [equal] = [line for line in told.splitlines() if line.startswith("Equal to the local run in content: ")]
    assert {"Square.squares", "Trainer.model"} <= set(equal.partition(": ")[2].split(", "))


@pytest.fixture
def refusals(place, tmp_path, warm):
    """Why pipelines are not rehearsed, each compiled in one process; empty where they are."""

    def compile_each(asked):
        with History(tmp_path).scratch() as folder:
            (folder / "r").mkdir()
            place = str(tmp_path)
            module = "slipway.pipeline.cloud.rehearsal.task_server"
            server = Server(folder, temporary=folder / "tmp", warm=warm, module=module, is_ours=False)
            with server:
                for name, parameters in asked.items():
                    target = ImageModuleRun(
                        pipeline=f"foreign_pipelines:{name.partition(' ')[0]}",
                        folder=str(TOYS),
                        output=tmp_path,
                        parameters=parameters,
                        image="i:1",
                        root=place,
                        serving=place,
                    )
                    order = Order(target=target, run_id="r", folder=folder / "r")
                    try:
                        server.compile(order, tick=lambda: None)
                        yield name.partition(" ")[2] or name, ""
                    except UsageError as error:
                        yield name.partition(" ")[2] or name, error.message

    return compile_each


def test_what_tfx_does_not_compile_or_a_rehearsal_must_not_do_is_refused(refusals, place):
    asked = {f"constructs {n}": {"folder": str(place), "names": n} for n in CONSTRUCTS.values()}
    asked |= {name: {"folder": str(place)} for name in PIPELINES.values()}
    refused = dict(refusals(asked))
    for row, name in {**CONSTRUCTS, **PIPELINES}.items():
        assert (refused[name] == "") == rows()[row][1].startswith("runs"), (row, refused[name])
    assert "container component cannot be rehearsed" in refused["container"]
    assert not (place / "ran").exists()
    assert "A rehearsal publishes nothing" in refused["publishing"]
    assert "a pipeline inside a pipeline (inner)" in refused["nested"]


def test_what_cannot_run_here_says_so(run_toy):
    with pytest.raises(UsageError, match=r"a pipeline inside a pipeline \(inner\)"):
        run_toy("nested")
    with pytest.raises(UsageError, match=r"Specified module file '.*nowhere/foreign_trainer.py'"):
        run_toy("without_file")
