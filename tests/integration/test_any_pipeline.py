"""What docs/any-pipeline.md says of TFX's constructs, row by row: run here, and as a compiled job."""

import shutil
from pathlib import Path

import pytest
from called import forked_servers
from fingerprints import fingerprints
from installed import needed

from slipway import run
from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.cloud.compile_and_rehearse import rehearse_request
from slipway.pipeline.cloud.rehearsal.services import ServiceName
from slipway.pipeline.commands.gc.collect import collect
from slipway.pipeline.engine.processes.client import ForkServerClient
from slipway.pipeline.errors import UsageError
from slipway.pipeline.plan.run_request import pipeline_request
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.run_target import ImageModuleRun, Order

needed("kfp", reason="TFX brings kfp to Python 3.11 only")
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
    "`Cond` on an artifact's own properties, nested, negated": "property_condition",
    "A function's parameter `n: int` that takes another node's value": "by_value",
    "Parameters joined from text and values, or with a run's id": "joined",
    "Artifact types of your own, with properties": "own_type",
    "A resolver function over all runs, without a `Resolver`": "of_all_runs",
}
PIPELINES = {
    "A container component": "container",
    "Your own component that makes a `PushedModel`": "publishing",
    "InfraValidator": "infra",
    "A pipeline inside a pipeline": "nested",
    "`outputs` of the pipeline": "with_outputs",
    "`execution_mode=ASYNC`": "asynchronous",
    "`ForEach`": "loop",
    "An input from a node that the pipeline leaves out": "left_out",
    "An exit handler among the components": "exit_handler",
}


def rows():
    """The page's table: construct -> what it says of a run here, and of a rehearsal."""
    table = PAGE.read_text(encoding="utf-8").partition("| construct |")[2].partition("\n\n")[0]
    cells = (line.strip("|").split(" | ") for line in table.splitlines()[2:])
    return {name.strip(): (here.strip(), there.strip()) for name, here, there in cells}


def rehearsed():
    """The constructs that the page says run in a rehearsal."""
    return ",".join(name for row, name in CONSTRUCTS.items() if rows()[row][1].startswith("runs"))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The output folder, under which the toys have their root; the toys are imported from their own."""
    folder = tmp_path_factory.mktemp("any")
    (folder / "imported").mkdir()
    (folder / "imported" / "data").write_text("imported")
    for file in filter(Path.is_file, (TOYS / "beside").iterdir()):
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
    assert states == {"Unmet": "skipped", "Other": "skipped"}
    expected = {
        "Met": "yes",
        "Optional": "nothing",
        "Union": "yes",
        "Placeholder": "4",
        "train/Make": "a",
        "Three": "three",
        "Longer": "5",
        "Joined": "a word",
    }
    assert {name: text_of(first, name) for name in expected} == expected
    assert first.log("train/Make").is_file()
    assert text_of(first, "Keras") == "0 tensorflow"
    assert {name for name in CONSTRUCTS if not rows()[name][0].startswith("runs")} == set()


def test_edited_module_beside_a_module_file_counts_and_what_was_pushed_before_stays_served(runs, place):
    _, second = runs
    ran = {name for name, node in second.nodes.items() if node.state == "complete"}
    assert ran == {"Trainer", "Pusher", "Latest", "Ask", "Newest"}
    assert second.nodes["Ask"].why == "the tables behind its query may have changed"
    assert second.nodes["Newest"].why == "other runs may have made more of what it reads"
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
        ForkServerClient(folder, temporary=folder / "tmp", warm=warm, is_ours=False) as server,
    ):
        graph = server.compile(request.order(run_id="plan", folder=folder), tick=lambda: None)
    prints = fingerprints(graph, roots=request.code_roots, memo=None, baseline="")
    code = {Path(part).name for part in prints["Trainer"].parts if part.startswith("code:")}
    assert {"foreign_trainer.py", "foreign_words.py", "__init__.py", "size.py"} <= code


@pytest.mark.external  # a whole rehearsal; its parts are seen in cloud/test_rehearse.py
def test_rehearsal_publishes_nothing_and_is_compared_with_the_local_run(runs, place, capfd, warm):
    request = pipeline_request(
        "foreign_pipelines:constructs",
        parameters={"folder": str(place), "names": rehearsed(), "word": "yes"},
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
    assert {"Square.squares", "Trainer.model", "Placeholder.made", "Three.made"} <= set(
        equal.partition(": ")[2].split(", ")
    )


@pytest.fixture
def refusals(place, tmp_path, warm):
    """Why pipelines are not rehearsed, each compiled in one process; empty where they are."""

    def compile_each(asked):
        with History(tmp_path).scratch() as folder:
            (folder / "r").mkdir()
            place = str(tmp_path)
            module = "slipway.pipeline.cloud.rehearsal.task_server"
            server = ForkServerClient(
                folder, temporary=folder / "tmp", warm=warm, module=module, is_ours=False
            )
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
    given = {"folder": str(place)}
    words = {"runtime_parameter": {"word": "yes"}}
    asked = {f"constructs {n}": {**given, "names": n, **words.get(n, {})} for n in CONSTRUCTS.values()}
    asked["constructs without_value"] = {**given, "names": "runtime_parameter"}
    asked["constructs of_another_name"] = {**given, "names": "slash", "wrod": "yes"}
    asked["constructs of_another_argument"] = {**given, "name": "slash"}
    asked |= dict.fromkeys(PIPELINES.values(), given) | {"rooted": {}}
    refused = dict(refusals(asked))
    for row, name in {**CONSTRUCTS, **PIPELINES}.items():
        assert (refused[name] == "") == rows()[row][1].startswith("runs"), (row, refused[name])
    assert refused["rooted"] == "", "it is not asked for the name that a rehearsal would give it"
    assert refused["joined"].startswith("foreign_pipelines:constructs cannot be compiled to a job: Joined: ")
    assert "Write: Invalid custom artifact type name: Note" in refused["own_type"]
    assert "Longer takes length as the value of another node's output" in refused["by_value"]
    assert "no value for the runtime parameter word" in refused["without_value"]
    assert "--set wrod: foreign_pipelines:constructs has no such parameter" in refused["of_another_name"]
    assert (
        "--set name: foreign_pipelines:constructs has no such argument; nearest: names"
        in refused["of_another_argument"]
    )
    assert "container component cannot be rehearsed" in refused["container"]
    assert not (place / "ran").exists()
    assert "A rehearsal publishes nothing" in refused["publishing"]
    assert "a pipeline inside a pipeline (inner)" in refused["nested"]


def test_what_cannot_run_here_says_so_before_anything_runs(run_toy, monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    told = {
        "nested": r"a pipeline inside a pipeline \(inner\)",
        "with_outputs": "has outputs, as a pipeline inside a pipeline",
        "asynchronous": "its execution_mode is ASYNC",
        "without_file": r"Specified module file '.*nowhere/foreign_trainer.py'",
        "loop": "Use is in a ForEach over the outputs of Make-a, Make-b",
        "left_out": "Use reads an output of Forgotten, which the pipeline",
        "exit_handler": "Bye is an exit handler",
        "container": "Say would start a container, and there is no Docker at unix://",
        "infra": "InfraValidator would start a container",
    }
    for name, message in told.items():
        with pytest.raises(UsageError, match=message):
            run_toy(name)
