"""What TFX's DSL and components offer, in toy pipelines that name nothing of Slipway. Data of the tests.

What they read and write is in a folder that each is given. (No `from __future__ import annotations`: TFX
reads the annotations.)
"""

# ruff: noqa: N802, RUF012 (a component is named like a class, and TFX's specs are written so)

import os
from pathlib import Path
from typing import List, Optional  # noqa: UP035

import apache_beam as beam
import tensorflow as tf
from absl import flags
from tfx import v1 as tfx
from tfx.components.example_gen import base_example_gen_executor, utils
from tfx.components.example_gen.component import QueryBasedExampleGen
from tfx.dsl.component.experimental import container_component, placeholders
from tfx.dsl.components.base import base_beam_executor, base_component, executor_spec
from tfx.dsl.control_flow.for_each import ForEach
from tfx.dsl.input_resolution.canned_resolver_functions import latest_created
from tfx.dsl.placeholder import placeholder as ph
from tfx.types import artifact, channel, component_spec, standard_artifacts

# As in TFX's penguin example, where Beam's options are read as these flags.
if "runner" not in flags.FLAGS:
    flags.DEFINE_enum("runner", "DirectRunner", ["DirectRunner", "FlinkRunner"], "Beam's runner.")

String, Model, Examples = standard_artifacts.String, standard_artifacts.Model, standard_artifacts.Examples
component, Parameter = tfx.dsl.components.component, tfx.dsl.components.Parameter
InputArtifact, OutputArtifact = tfx.dsl.components.InputArtifact, tfx.dsl.components.OutputArtifact


@component
def Make(text: Parameter[str], made: OutputArtifact[String]):
    """Writes a value."""
    made.value = text


@component
def Use(value: InputArtifact[String], made: OutputArtifact[String]):
    """Passes a value on."""
    made.value = value.value


@component
def MayUse(made: OutputArtifact[String], value: InputArtifact[String] = None):
    """Passes a value on where there is one."""
    made.value = value.value if value else "nothing"


@component
def Count(value: InputArtifact[String]) -> tfx.dsl.components.OutputDict(length=int):
    """Returns a value. TFX's containers have read no input yet, as its launcher has here."""
    return {"length": len(value.read())}


@component
def Told(number: Parameter[int], made: OutputArtifact[String]):
    """Writes a number."""
    made.value = str(number)


@component
def Keras(made: OutputArtifact[String]):
    """Writes which Keras it was told to use."""
    made.value = f"{os.environ['TF_USE_LEGACY_KERAS']} {os.environ['KERAS_BACKEND']}"


@component
def Flag(made: OutputArtifact[String]):
    """Writes a value, and what is asked of it."""
    made.value = "flagged"
    made.set_string_custom_property("color", "red")
    made.set_int_custom_property("count", 3)


@component
def Longer(length: int, made: OutputArtifact[String]):
    """Takes another node's value as a number."""
    made.value = str(length + 1)


class Note(artifact.Artifact):
    """An artifact type of the user's own."""

    TYPE_NAME = "Note"
    PROPERTIES = {"size": artifact.Property(type=artifact.PropertyType.INT)}


@component
def Write(made: OutputArtifact[Note]):
    """Makes an artifact of the user's own type."""
    made.size = 3


@tfx.orchestration.experimental.exit_handler
def Bye(final_status: Parameter[str]):
    """An exit handler."""
    Path(final_status).touch()


@component
def Publish(
    folder: Parameter[str],
    model: InputArtifact[Model],
    pushed: OutputArtifact[standard_artifacts.PushedModel],
):
    """Publishes in a way of its own."""
    Path(folder, "published").write_text("live")
    pushed.set_int_custom_property("pushed", 1)


class _SquareSpec(component_spec.ComponentSpec):
    PARAMETERS = {"count": component_spec.ExecutionParameter(type=int)}
    INPUTS = {}
    OUTPUTS = {"squares": component_spec.ChannelParameter(type=Examples)}


class _SquareExecutor(base_beam_executor.BaseBeamExecutor):
    def Do(self, input_dict, output_dict, exec_properties):
        [squares] = output_dict["squares"]
        with self._make_beam_pipeline() as pipeline:
            (
                pipeline
                | beam.Create(range(exec_properties["count"]))
                | beam.Map(lambda number: str(number * number))
                | beam.io.WriteToText(os.path.join(squares.uri, "squares"))  # noqa: PTH118 (may be remote)
            )


class Square(base_component.BaseComponent):
    """A component of Beam, in TFX's class style."""

    SPEC_CLASS = _SquareSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(_SquareExecutor)

    def __init__(self, count: int):
        squares = tfx.dsl.Channel(type=Examples)
        super().__init__(_SquareSpec(count=count, squares=squares))


@beam.ptransform_fn
@beam.typehints.with_input_types(beam.Pipeline)
@beam.typehints.with_output_types(tf.train.Example)
def _Rows(pipeline, exec_properties, split_pattern):
    return pipeline | beam.Create([tf.train.Example()] * int(split_pattern))


class _QueryExecutor(base_example_gen_executor.BaseExampleGenExecutor):
    def GetInputSourceToExamplePTransform(self):
        return _Rows


class Ask(QueryBasedExampleGen):
    """Reads from a database, as TFX's example for Presto does; its query is how many rows to make."""

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(_QueryExecutor)

    def __init__(self, query: str):
        super().__init__(input_config=utils.make_default_input_config(query))


def pipeline(name, folder, *nodes):
    """A pipeline whose root is where its artifacts and, as in TFX's templates, its served models lie."""
    return tfx.dsl.Pipeline(
        pipeline_name=name,
        pipeline_root=f"{folder}/artifacts/toys",
        components=list(nodes),
        enable_cache=True,
    )


def value_artifact(folder):
    """A value that a component returns, and one that it writes."""
    make = Make(text="yes").with_id("Make")
    return make, Count(value=make.outputs["made"]).with_id("Count")


def condition(folder):
    """Conditions that are met and not met, an input that need not be there, the one of two that is."""
    make = Make(text="yes").with_id("Asked")
    made = make.outputs["made"]
    with tfx.dsl.Cond(made.future()[0].value == "yes"):
        met = Use(value=made).with_id("Met")
    with tfx.dsl.Cond(made.future()[0].value == "no"):
        unmet = Use(value=made).with_id("Unmet")
    may = MayUse(value=unmet.outputs["made"]).with_id("Optional")
    either = Use(value=channel.union([met.outputs["made"], unmet.outputs["made"]])).with_id("Union")
    return make, met, unmet, may, either


def property_condition(folder):
    """Conditions on what an artifact says of itself, one inside another."""
    flag = Flag()
    says = flag.outputs["made"].future()[0].custom_property
    with tfx.dsl.Cond(says("color") == "red"):
        red = Make(text="red").with_id("Red")
        with tfx.dsl.Cond(ph.logical_and(says("count") > 2, ph.logical_not(says("count") > 3))):
            three = Make(text="three").with_id("Three")
    with tfx.dsl.Cond(says("color") != "red"):
        other = Make(text="other").with_id("Other")
    return flag, red, three, other


def by_value(folder):
    """A function that takes another node's value."""
    four = Make(text="four").with_id("Word")
    count = Count(value=four.outputs["made"]).with_id("Counted")
    return four, count, Longer(length=count.outputs["length"])


def joined(folder):
    """A parameter put together from text and another node's value."""
    word = Make(text="word").with_id("Part")
    return word, Make(text="a " + word.outputs["made"].future()[0].value).with_id("Joined")


def own_type(folder):
    """An artifact type of the user's own."""
    return (Write(),)


def of_all_runs(folder):
    """What runs have made so far, found by a resolver function, without a Resolver."""
    make = Make(text="a").with_id("Each")
    made = tfx.dsl.Channel(type=String, producer_component_id="Each", output_key="made")
    newest = Use(value=latest_created(made)).with_id("Newest")
    newest.add_upstream_node(make)
    return make, newest


def placeholder(folder):
    """A parameter that is another node's value."""
    count = Count(value=Make(text="four").with_id("Four").outputs["made"]).with_id("Length")
    four = count.inputs["value"].producer_component
    return four, count, Told(number=count.outputs["length"].future()[0].value).with_id("Placeholder")


def importer(folder):
    """An artifact of the user's own."""
    source = tfx.dsl.Importer(
        source_uri=f"{folder}/imported",
        artifact_type=Examples,
        properties={"split_names": '["train", "eval"]'},
    )
    return (source.with_id("Importer"),)


def resolver(folder):
    """The latest artifact of a type."""
    latest = tfx.dsl.Resolver(
        strategy_class=tfx.dsl.experimental.LatestArtifactStrategy, model=tfx.dsl.Channel(type=Model)
    )
    return (latest.with_id("Latest"),)


def beam_component(folder):
    """A component of Beam in TFX's class style, and what it was told of Keras."""
    return Square(count=3), Keras()


def query(folder):
    """An ExampleGen of the user's own that asks a database."""
    return (Ask("5"),)


def module_file(folder):
    """A Trainer whose `module_file` imports a module beside it, and TFX's Pusher."""
    source = tfx.dsl.Importer(
        source_uri=f"{folder}/imported",
        artifact_type=Examples,
        properties={"split_names": '["train", "eval"]'},
    ).with_id("Source")
    trainer = tfx.components.Trainer(
        module_file=f"{folder}/foreign_trainer.py",
        examples=source.outputs["result"],
        train_args=tfx.proto.TrainArgs(),
        eval_args=tfx.proto.EvalArgs(),
    )
    place = tfx.proto.PushDestination.Filesystem(base_directory=f"{folder}/artifacts/toys/serving_model")
    pusher = tfx.components.Pusher(
        model=trainer.outputs["model"], push_destination=tfx.proto.PushDestination(filesystem=place)
    )
    return source, trainer, pusher


def slash(folder):
    """A node whose id has a slash."""
    return (Make(text="a").with_id("train/Make"),)


def runtime_parameter(folder):
    """A parameter that is given when it runs."""
    word = tfx.dsl.experimental.RuntimeParameter(name="word", ptype=str, default="yes")
    return (Make(text=word).with_id("Parameter"),)


CONSTRUCTS = (
    value_artifact,
    condition,
    placeholder,
    importer,
    resolver,
    beam_component,
    query,
    module_file,
    slash,
    runtime_parameter,
    property_condition,
    by_value,
    joined,
    own_type,
    of_all_runs,
)


def constructs(folder: str, names: Optional[List[str]] = None):  # noqa: UP006, UP045 (as in TFX's examples)
    """Some constructs in one pipeline, or all of them."""
    chosen = [make for make in CONSTRUCTS if names is None or make.__name__ in names]
    return pipeline("constructs", folder, *(node for make in chosen for node in make(folder)))


def container(folder: str):
    """A container component."""
    say = container_component.create_container_component(
        name="Say",
        image="alpine",
        command=["sh", "-c", f"echo ran > {folder}/ran; echo", placeholders.InputValuePlaceholder("text")],
        parameters={"text": str},
    )
    return pipeline("container", folder, say(text="a"))


def nested(folder: str):
    """A pipeline inside a pipeline."""
    return pipeline("outer", folder, pipeline("inner", folder, Make(text="a").with_id("Make")))


def with_outputs(folder: str):
    """A pipeline with outputs of its own, as one has that another pipeline holds."""
    make = Make(text="a").with_id("Make")
    made = {"made": make.outputs["made"]}
    return tfx.dsl.Pipeline("with-outputs", folder, components=[make], outputs=made)


def asynchronous(folder: str):
    """A pipeline whose nodes belong to no run."""
    mode = tfx.dsl.ExecutionMode.ASYNC
    return tfx.dsl.Pipeline("asynchronous", folder, components=[Make(text="a")], execution_mode=mode)


def loop(folder: str):
    """A loop over artifacts."""
    nodes = [Make(text=text).with_id(f"Make-{text}") for text in ("a", "b")]
    with ForEach(channel.union([node.outputs["made"] for node in nodes])) as each:
        use = Use(value=each).with_id("Use")
    return pipeline("loop", folder, *nodes, use)


def left_out(folder: str):
    """A node that reads an output of one that the pipeline leaves out."""
    make = Make(text="a").with_id("Forgotten")
    return pipeline("left-out", folder, Use(value=make.outputs["made"]))


def exit_handler(folder: str):
    """An exit handler among the components."""
    bye = Bye(final_status=tfx.orchestration.experimental.FinalStatusStr())
    return pipeline("exit-handler", folder, Make(text="a"), bye)


def publishing(folder: str):
    """A component of the user's own that pushes."""
    model = tfx.dsl.Importer(source_uri=f"{folder}/imported", artifact_type=Model).with_id("Importer")
    return pipeline("publishing", folder, model, Publish(folder=folder, model=model.outputs["result"]))


def infra(folder: str):
    """A model that is to be tried in a container of its server."""
    model = tfx.dsl.Importer(source_uri=f"{folder}/imported", artifact_type=Model).with_id("Importer")
    tried = tfx.components.InfraValidator(
        model=model.outputs["result"],
        serving_spec=tfx.proto.ServingSpec(
            tensorflow_serving=tfx.proto.TensorFlowServing(tags=["latest"]),
            local_docker=tfx.proto.LocalDockerConfig(),
        ),
    )
    return pipeline("infra", folder, model, tried)


def without_file(folder: str):
    """A Trainer whose `module_file` is not there."""
    return pipeline("without-file", folder, *module_file(f"{folder}/nowhere"))


def rooted(pipeline_root: str):
    """A function that takes where the artifacts lie, and not the pipeline's name."""
    return tfx.dsl.Pipeline("rooted", pipeline_root, components=[Make(text="a")])
