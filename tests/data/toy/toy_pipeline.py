"""Toy pipelines of function components that fail, hang and fork in every way a node can. Data of the tests.

What a component does is told by files in the folder that TOY names, so that one pipeline can behave
differently in a run and in its resume. (No `from __future__ import annotations`: TFX reads the annotations.)
"""

# ruff: noqa: N802 (a component is named like a class)

import ctypes
import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

from tfx import v1 as tfx
from tfx.dsl.experimental.node_execution_options.utils import NodeExecutionOptions
from tfx.types import standard_artifacts
from tfx.types.channel import union
from tfx.types.channel_utils import external_pipeline_artifact_query

from slipway.components.errors import GateStopError
from slipway.components.kept_state import PREEMPTED_EXIT_CODE, state_folder
from slipway.schemas.artifacts import DataVerdict

FOLDER = Path(os.environ["TOY"])


def note(name: str, text: str) -> None:
    """Adds a line to a file of the folder: what must happen once can be counted."""
    with (FOLDER / name).open("a") as stream:
        stream.write(f"{text}\n")


@tfx.dsl.components.component
def Sleep(
    seconds: tfx.dsl.components.Parameter[float],
    made: tfx.dsl.components.OutputArtifact[standard_artifacts.String],
):
    """Sleeps."""
    time.sleep(seconds)
    made.value = "slept"


@tfx.dsl.components.component
def Make(
    text: tfx.dsl.components.Parameter[str],
    made: tfx.dsl.components.OutputArtifact[standard_artifacts.String],
    number: tfx.dsl.components.Parameter[int] = 1,
):
    """Writes a value."""
    note("made", f"{text} {number}")
    made.value = text


@tfx.dsl.components.component
def Draw(made: tfx.dsl.components.OutputArtifact[standard_artifacts.String]):
    """Writes what no other draws."""
    made.value = str(uuid.uuid4())
    note("drawn", made.uri)


@tfx.dsl.components.component
def Misbehave(
    how: tfx.dsl.components.Parameter[str],
    made: tfx.dsl.components.OutputArtifact[standard_artifacts.Examples],
):
    """Fails as told by `how`, unless the file `well` is in the folder."""
    name = how.partition(":")[2] or how
    note(f"attempts-{name}", str(os.getpid()))
    if not (FOLDER / "well").exists():
        misbehave(how.partition(":")[0], Path(made.uri))
        if how == "remove":
            return
    Path(made.uri, "data").write_text("good")


@tfx.dsl.components.component
def Judge(
    version: tfx.dsl.components.Parameter[str],
    verdict: tfx.dsl.components.OutputArtifact[DataVerdict],
):
    """A data gate: what waits for it gets nothing from it. Says no unless the toys are well."""
    note("judged", version)
    if not (FOLDER / "well").exists():
        misbehave("gate", Path(verdict.uri))
    Path(verdict.uri, "data").write_text("good")


def misbehave(how: str, output: Path) -> None:
    """The ways to fail."""
    if how == "raise":
        raise ValueError("the toy is broken\nsecond line")
    if how == "gate":
        verdict = {"lines": ["tips: 3 rows below 0, limit 0", "  correct them"], "override": "accept_data"}
        raise GateStopError("1 finding in the toys", verdict=verdict)
    if how == "exit":
        sys.exit("bye")
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "remove":
        output.rmdir()
    if how == "kill":
        (output / "half").write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "abort":
        os.abort()
    if how == "segfault":
        ctypes.string_at(0)
    if how == "disk":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/some/file")
    if how == "fill":
        with (output / "half").open("wb", buffering=0) as stream:
            while True:
                stream.write(b"x" * 65536)
    if how == "once" and len((FOLDER / "attempts-once").read_text().split()) == 1:
        (output / "half").write_text("half")
        raise RuntimeError("not yet")
    if how == "killed-once" and len((FOLDER / "attempts-killed-once").read_text().split()) == 1:
        (output / "half").write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "fork":
        multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,)).start()
        subprocess.Popen(["sleep", "601"])
        subprocess.Popen(["sleep", "602"], start_new_session=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "deaf":
        signal.signal(signal.SIGTERM, lambda *_: note("told", "to end"))
        note("deaf", str(os.getpid()))
        time.sleep(600)
    if how == "stop":
        os.kill(os.getpid(), signal.SIGSTOP)
        note("woken", str(os.getpid()))
    if how == "hang":
        # A child that saves when it is told to end, as a training does.
        subprocess.Popen(
            [
                "sh",
                "-c",
                f"trap 'sleep 1; echo saved >> {FOLDER}/saved; exit' TERM; echo > {FOLDER}/hangs; "
                "while :; do sleep 0.1; done",
            ]
        )
        time.sleep(600)


@tfx.dsl.components.component
def Remember(
    text: tfx.dsl.components.Parameter[str],
    made: tfx.dsl.components.OutputArtifact[standard_artifacts.String],
):
    """Is killed at each attempt until the toys are well, and counts them in what it keeps."""
    with (state_folder() / "attempts").open("a+") as attempts:
        attempts.write("x")
        attempts.seek(0)
        note("remembered", f"{text} {len(attempts.read())}")
    if not (FOLDER / "well").exists():
        os.kill(os.getpid(), signal.SIGKILL)
    made.value = text


@tfx.dsl.components.component
def Leave(made: tfx.dsl.components.OutputArtifact[standard_artifacts.String]):
    """Leaves twice as a training does that was told to end, with its state kept."""
    with (state_folder() / "attempts").open("a+") as attempts:
        attempts.write("x")
        attempts.seek(0)
        if len(attempts.read()) < 3:
            raise SystemExit(PREEMPTED_EXIT_CODE)
    made.value = "there"


@tfx.dsl.components.component
def Push(value: tfx.dsl.components.InputArtifact[standard_artifacts.Examples]):
    """Has an effect that must not happen twice."""
    note("pushed", Path(value.uri, "data").read_text())


@tfx.dsl.components.component
def Use(
    value: tfx.dsl.components.InputArtifact[standard_artifacts.String],
    made: tfx.dsl.components.OutputArtifact[standard_artifacts.String],
):
    """Passes a value on."""
    made.value = value.value


@tfx.dsl.components.component
def MayUse(
    made: tfx.dsl.components.OutputArtifact[standard_artifacts.String],
    value: tfx.dsl.components.InputArtifact[standard_artifacts.String] = None,
):
    """Passes a value on where there is one."""
    made.value = value.value if value else "nothing"


@tfx.dsl.components.component
def Fit(
    text: tfx.dsl.components.Parameter[str],
    model: tfx.dsl.components.OutputArtifact[standard_artifacts.Model],
):
    """Makes a model."""
    Path(model.uri, "word").write_text(text)


@tfx.dsl.components.component
def Learn(
    value: tfx.dsl.components.InputArtifact[standard_artifacts.String],
    model: tfx.dsl.components.OutputArtifact[standard_artifacts.Model],
):
    """Makes a model of a value."""
    Path(model.uri, "word").write_text(value.value)


@tfx.dsl.components.component
def Bless(
    model: tfx.dsl.components.InputArtifact[standard_artifacts.Model],
    blessing: tfx.dsl.components.OutputArtifact[standard_artifacts.ModelBlessing],
    blessed: tfx.dsl.components.Parameter[int] = 1,
):
    """Blesses each model, unless it is told not to."""
    blessing.set_int_custom_property("blessed", blessed)
    blessing.set_int_custom_property("current_model_id", model.id)


@tfx.dsl.components.component
def Infer(
    made: tfx.dsl.components.OutputArtifact[standard_artifacts.String],
    model: tfx.dsl.components.InputArtifact[standard_artifacts.Model] = None,
):
    """Tells which model it has."""
    made.value = Path(model.uri, "word").read_text() if model else "nothing"


def pipeline(name: str, *nodes, enable_cache: bool = True) -> tfx.dsl.Pipeline:
    """A pipeline whose artifacts lie in the folder."""
    return tfx.dsl.Pipeline(
        pipeline_name=name,
        pipeline_root=str(FOLDER / "artifacts"),
        components=list(nodes),
        enable_cache=enable_cache,
    )


def one():
    """One node."""
    return pipeline("one", Make(text="a").with_id("Make"))


def draws():
    """Two nodes of equal settings that draw lots, and one that fails; the file `cached` allows caching."""
    nodes = [Draw().with_id(node_id) for node_id in ("First", "Second")]
    last = Misbehave(how="raise").with_id("Last")
    for node in nodes:
        last.add_upstream_node(node)
    return pipeline("draws", *nodes, last, enable_cache=(FOLDER / "cached").exists())


def sleepers():
    """Eight nodes that sleep one second each."""
    return pipeline("sleepers", *(Sleep(seconds=1.0).with_id(f"Sleep{i}") for i in range(8)))


def chain():
    """Ten nodes, one after the other."""
    nodes = [Make(text="a").with_id("Node0")]
    for i in range(1, 10):
        nodes.append(Use(value=nodes[-1].outputs["made"]).with_id(f"Node{i}"))
    return pipeline("chain", *nodes)


def faults():
    """A node for each way to fail, one that is well, and what depends on the first."""
    ways = ("raise", "exit", "kill", "abort", "segfault", "disk", "fork", "interrupt", "remove")
    nodes = [Misbehave(how=way).with_id(way.capitalize()) for way in ways]
    push = Push(value=nodes[0].outputs["made"]).with_id("Push")
    after = Make(text="after").with_id("After")
    after.add_upstream_node(push)
    return pipeline("faults", *nodes, push, after, Make(text="well").with_id("Well"))


def gate():
    """A node that is done, a gate that stops although it may be tried again, and a push."""
    stops = Misbehave(how="gate").with_id("Gate")
    stops.node_execution_options = NodeExecutionOptions(max_execution_retries=2)
    push = Push(value=stops.outputs["made"]).with_id("Push")
    return pipeline("gate", Make(text="a").with_id("Make"), stops, push)


def gate_before_kept():
    """A gate, what waits for it, and what comes after; the file `version` changes the first and the last."""
    version = (FOLDER / "version").read_text()
    asked = Judge(version=version).with_id("Gate")
    kept = Make(text="kept").with_id("Kept")
    kept.add_upstream_node(asked)
    last = Make(text=f"last {version}").with_id("Last")
    last.add_upstream_node(kept)
    return pipeline("gate_before_kept", asked, kept, last)


def limits():
    """Nodes that retry, are deaf, hang, or stop."""
    once = Misbehave(how="once").with_id("Once")
    once.node_execution_options = NodeExecutionOptions(max_execution_retries=2)
    killed = Misbehave(how="killed-once").with_id("KilledOnce")
    killed.node_execution_options = NodeExecutionOptions(max_execution_retries=1)
    deaf = Misbehave(how="deaf").with_id("Deaf")
    deaf.node_execution_options = NodeExecutionOptions(execution_timeout_sec=6)
    stop = Misbehave(how="stop").with_id("Stop")
    stop.node_execution_options = NodeExecutionOptions(max_execution_retries=1)
    return pipeline("limits", once, killed, deaf, stop, Misbehave(how="hang").with_id("Hang"))


def hang():
    """A node that is done, one that hangs until the folder says `well`, and a push."""
    made = Make(text="first").with_id("Make")
    hanging = Misbehave(how="hang").with_id("Hang")
    hanging.add_upstream_node(made)
    return pipeline("hang", made, hanging, Push(value=hanging.outputs["made"]).with_id("Push"))


def deaf():
    """A node that ignores the request to end."""
    return pipeline("deaf", Misbehave(how="deaf").with_id("Deaf"))


def remember():
    """A node that is done, and one that keeps what it can go on with; and is tried twice."""
    make = Make(text="first").with_id("Make")
    text = tfx.dsl.experimental.RuntimeParameter(name="text", ptype=str, default="a")
    remember = Remember(text=text).with_id("Remember")
    remember.add_upstream_node(make)
    remember.node_execution_options = NodeExecutionOptions(max_execution_retries=1)
    return pipeline("remember", make, remember)


def leave():
    """A node without retries that leaves twice."""
    leave = Leave().with_id("Leave")
    leave.node_execution_options = NodeExecutionOptions(max_execution_retries=0)
    return pipeline("leave", leave)


def fill():
    """A node that fills the disk, and a push."""
    full = Misbehave(how="fill").with_id("Fill")
    return pipeline("fill", full, Push(value=full.outputs["made"]).with_id("Push"))


def forty():
    """Forty nodes that do next to nothing."""
    return pipeline("forty", *(Make(text="a", number=i).with_id(f"Node{i}") for i in range(40)))


def fail_fast():
    """A node that raises beside one that hangs, and one that waits for neither but comes later."""
    return pipeline(
        "fail-fast", Misbehave(how="hang").with_id("Hang"), Misbehave(how="raise").with_id("Raise")
    )


def features():
    """Conditions met and not met, an optional input, an importer, a resolver, a runtime parameter."""
    word = tfx.dsl.experimental.RuntimeParameter(name="word", ptype=str, default="yes")
    count = tfx.dsl.experimental.RuntimeParameter(name="count", ptype=int, default=1)
    make = Make(text=word, number=count).with_id("Make")
    value = make.outputs["made"].future()[0].value
    with tfx.dsl.Cond(value == "yes"):
        met = Use(value=make.outputs["made"]).with_id("IfYes")
    with tfx.dsl.Cond(value == "no"):
        unmet = Use(value=make.outputs["made"]).with_id("IfNo")
    needs = Use(value=unmet.outputs["made"]).with_id("NeedsNo")
    may = MayUse(value=unmet.outputs["made"]).with_id("MayUseNo")
    either = Use(value=union([met.outputs["made"], unmet.outputs["made"]])).with_id("Either")
    ordered = Make(text="ordered").with_id("Ordered")
    ordered.add_upstream_node(unmet)
    imported = tfx.dsl.Importer(
        source_uri=str(FOLDER / "imported"),
        artifact_type=standard_artifacts.Examples,
        properties={"split_names": '["train"]'},
    )
    imported = imported.with_id("Importer")
    push = Push(value=imported.outputs["result"]).with_id("Push")
    latest = tfx.dsl.Resolver(
        strategy_class=tfx.dsl.experimental.LatestArtifactStrategy,
        latest=tfx.dsl.Channel(type=standard_artifacts.Model),
    ).with_id("Latest")
    return pipeline("features", make, met, unmet, needs, may, either, ordered, imported, push, latest)


def follow():
    """A node, a resolver of what it made last, and one that uses that."""
    word = tfx.dsl.experimental.RuntimeParameter(name="word", ptype=str, default="a")
    make = Make(text=word).with_id("Make")
    latest = tfx.dsl.Resolver(
        strategy_class=tfx.dsl.experimental.LatestArtifactStrategy,
        latest=tfx.dsl.Channel(type=standard_artifacts.String, producer_component_id="Make"),
    ).with_id("Latest")
    latest.add_upstream_node(make)
    return pipeline("follow", make, latest, Use(value=latest.outputs["latest"]).with_id("Use"))


def train(word: str):
    """Makes a model and blesses it."""
    fit = Fit(text=word).with_id("Fit")
    return pipeline("train", fit, Bless(model=fit.outputs["model"]).with_id("Bless"))


def train_and_infer(word: str):
    """Makes and blesses a model, and uses the latest that earlier runs have blessed."""
    fit = Fit(text=word).with_id("Fit")
    latest = tfx.dsl.Resolver(
        strategy_class=tfx.dsl.experimental.LatestBlessedModelStrategy,
        model=tfx.dsl.Channel(type=standard_artifacts.Model),
        model_blessing=tfx.dsl.Channel(type=standard_artifacts.ModelBlessing),
    ).with_id("Before")
    use = Infer(model=latest.outputs["model"]).with_id("Infer")
    bless = Bless(model=fit.outputs["model"]).with_id("Bless")
    return pipeline("train-and-infer", latest, fit, bless, use)


def nights():
    """Makes another model in every run, as of a query, with the latest blessed one to compare with."""
    fit = Fit(text=tfx.dsl.placeholders.execution_invocation().pipeline_run_id).with_id("Fit")
    latest = tfx.dsl.Resolver(
        strategy_class=tfx.dsl.experimental.LatestBlessedModelStrategy,
        model=tfx.dsl.Channel(type=standard_artifacts.Model),
        model_blessing=tfx.dsl.Channel(type=standard_artifacts.ModelBlessing),
    ).with_id("Latest")
    before = Infer(model=latest.outputs["model"]).with_id("Infer")
    bless = Bless(model=fit.outputs["model"]).with_id("Bless")
    bless.add_upstream_node(before)
    last = Misbehave(how="raise").with_id("Last")
    last.add_upstream_node(bless)
    return pipeline("nights", latest, before, fit, bless, last)


def rolling():
    """Makes a model of the latest value, as of spans, with the latest blessed one to compare with."""
    follows = follow().components
    learn = Learn(value=follows[1].outputs["latest"]).with_id("Learn")
    blessed = tfx.dsl.Resolver(
        strategy_class=tfx.dsl.experimental.LatestBlessedModelStrategy,
        model=tfx.dsl.Channel(type=standard_artifacts.Model),
        model_blessing=tfx.dsl.Channel(type=standard_artifacts.ModelBlessing),
    ).with_id("Blessed")
    before = Infer(model=blessed.outputs["model"]).with_id("Infer")
    bless = Bless(model=learn.outputs["model"]).with_id("Bless")
    bless.add_upstream_node(before)
    return pipeline("rolling", *follows, learn, blessed, before, bless)


def infer(name: str, store: str):
    """Uses the latest model that the pipeline above has blessed: of another name, or of the same one."""
    kinds = {"model": standard_artifacts.Model, "model_blessing": standard_artifacts.ModelBlessing}
    makers = {"model": ("Fit", "model"), "model_blessing": ("Bless", "blessing")}
    found = {key: tfx.dsl.Channel(type=kind) for key, kind in kinds.items()}
    if name != "train":
        found = {
            key: external_pipeline_artifact_query(
                kind, owner="us", pipeline_name="train", producer_component_id=node, output_key=output
            )
            for (key, kind), (node, output) in zip(kinds.items(), makers.values(), strict=True)
        }
    latest = tfx.dsl.Resolver(
        strategy_class=tfx.dsl.experimental.LatestBlessedModelStrategy, **found
    ).with_id("Latest")
    made = pipeline(name, latest, Infer(model=latest.outputs["model"]).with_id("Infer"))
    made.metadata_connection_config = tfx.orchestration.metadata.sqlite_metadata_connection_config(store)
    return made


def compare(word: str, verdict: int, store: str):
    """Makes a model, with the latest blessed one to compare with."""
    fit = Fit(text=word).with_id("Fit")
    latest = tfx.dsl.Resolver(
        strategy_class=tfx.dsl.experimental.LatestBlessedModelStrategy,
        model=tfx.dsl.Channel(type=standard_artifacts.Model),
        model_blessing=tfx.dsl.Channel(type=standard_artifacts.ModelBlessing),
    ).with_id("Latest")
    before = Infer(model=latest.outputs["model"]).with_id("Infer")
    bless = Bless(model=fit.outputs["model"], blessed=verdict).with_id("Bless")
    bless.add_upstream_node(before)
    made = pipeline("compare", latest, before, fit, bless)
    made.metadata_connection_config = tfx.orchestration.metadata.sqlite_metadata_connection_config(store)
    return made


def missing():
    """A node whose input no node made."""
    nobody = tfx.dsl.Resolver(
        strategy_class=tfx.dsl.experimental.LatestArtifactStrategy,
        latest=tfx.dsl.Channel(type=standard_artifacts.Examples),
    ).with_id("Latest")
    return pipeline("missing", nobody, Push(value=nobody.outputs["latest"]).with_id("Push"))


def required():
    """A runtime parameter without a default."""
    return pipeline(
        "required", Make(text=tfx.dsl.experimental.RuntimeParameter(name="word", ptype=str)).with_id("Make")
    )


def falsy():
    """Runtime parameters whose defaults are false."""
    word = tfx.dsl.experimental.RuntimeParameter(name="word", ptype=str, default="")
    count = tfx.dsl.experimental.RuntimeParameter(name="count", ptype=int, default=0)
    return pipeline("falsy", Make(text=word, number=count).with_id("Make"))


def arguments():
    """Says with which arguments the process was started that builds the pipeline."""
    return pipeline("arguments", Make(text=" ".join(sys.argv[1:]) or "none").with_id("Make"))


def broken():
    """Raises while the pipeline is built."""
    raise KeyError("no such setting")


def leaves():
    """Ends the process that builds the pipeline."""
    sys.exit(3)


number = 7
