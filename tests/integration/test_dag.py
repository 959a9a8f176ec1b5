"""How the components are wired."""

import pytest

from slipway.pipeline.config import WorkloadChoice, read_assignments

pytestmark = pytest.mark.slow

UPSTREAM = {
    "Ingest": set(),
    "StatisticsGen": {"Ingest"},
    "SchemaGen": set(),
    "ExampleValidator": {"StatisticsGen", "SchemaGen"},
    "Reference": set(),
    "DataGate": {"Ingest", "StatisticsGen", "SchemaGen", "ExampleValidator", "Reference"},
    "Transform": {"Ingest", "SchemaGen", "DataGate"},
    "Trainer": {"Transform", "SchemaGen"},
    "Baseline": set(),
    "Evaluator": {"Ingest", "SchemaGen", "Trainer", "Baseline"},
    "ServingCheck": {"Ingest", "SchemaGen", "Transform", "Trainer"},
    "ModelGate": {"Ingest", "StatisticsGen", "Trainer", "Evaluator", "ServingCheck"},
    "Pusher": {"Ingest", "SchemaGen", "Trainer", "ModelGate", "DataGate"},
}


@pytest.fixture(scope="module")
def compiled(project, tmp_path_factory):
    """Compiles the taxi workload with `--set` values; returns its graph."""
    from slipway.pipeline.engine.tfx.compile import compile_target
    from slipway.pipeline.plan.run_request import workload_request

    def call(*sets):
        output = tmp_path_factory.mktemp("output")
        path = project / "workloads/taxi/workload.yaml"
        request = workload_request(WorkloadChoice(path, read_assignments(sets)), output=output, beam_args=())
        return compile_target(request.order(run_id="r", folder=output))

    return call


@pytest.fixture(scope="module")
def graph(compiled):
    return compiled().graph


def test_every_component_waits_for_what_it_reads_and_nothing_else(graph):
    assert {node.id: set(node.upstream) for node in graph.nodes} == UPSTREAM


def test_transform_waits_for_the_data_gate_and_does_not_depend_on_what_that_found(graph):
    assert graph["Transform"].gates == ("DataGate",)
    assert [node.id for node in graph.nodes if node.gates] == ["Transform"]


def test_reference_of_the_data_gate_can_be_foreseen_and_is_not_taken_for_the_baseline(graph):
    assert {node.id: node.finds_reference for node in graph.nodes if node.finds_reference} == {
        "Reference": "blessed"
    }
    assert [node.id for node in graph.nodes if node.finds_baseline] == ["Baseline"]


@pytest.mark.parametrize(
    ("wanted", "found"), [("last_passed", ["passed"]), ("span 12", ["span 12"]), ("none", []), ("folder", [])]
)
def test_what_the_data_is_compared_with_is_looked_up_or_left_alone(compiled, tmp_path, wanted, found):
    if wanted == "folder":
        wanted = str(tmp_path / "folder")
        (tmp_path / "folder" / "Split-train").mkdir(parents=True)
    graph = compiled(f"data_gate.reference={wanted}").graph
    assert [node.finds_reference for node in graph.nodes if node.finds_reference] == found
    assert ("Reference" in graph["DataGate"].upstream) == bool(found)
    assert ("folder" in graph["DataGate"].params["reference_folder"]) == wanted.endswith("folder")


def test_limits_of_the_data_gate_are_settings_of_its_own(compiled):
    gate = compiled("data_gate.max_row_change=0.9").graph["DataGate"]
    assert gate.params["limits.max_row_change"] == "0.9"
    assert gate.params["limits.max_bad_share"] == "0.001"
    assert gate.params["schema_file"] == '"schemas/taxi.pbtxt"'


def test_inferred_schema_waits_for_the_statistics(compiled):
    assert compiled("schema=null").graph["SchemaGen"].upstream == ("StatisticsGen",)


def test_settings_of_the_workload_reach_the_trainer(compiled):
    trainer = compiled("train.batch_size=512").graph["Trainer"]
    assert trainer.params["custom_config.batch_size"] == "512"


def test_tuner_is_there_only_where_the_workload_searches_and_hands_on_what_it_found(graph, compiled):
    assert "Tuner" not in {node.id for node in graph.nodes}
    found = compiled("tune.search={learning_rate: {choices: [0.1, 0.01]}}").graph
    assert (found["Tuner"].upstream, "Tuner" in found["Trainer"].upstream) == (("Transform",), True)
    assert "workloads.taxi.model.build_model" in found["Tuner"].code


def test_exports_are_none_of_the_tuners_business(compiled):
    search = "tune.search={learning_rate: {choices: [0.1, 0.01]}}"
    plain, other = (compiled(search, f"train.exports={kinds}").graph for kinds in ("[]", "[litert]"))
    assert plain["Tuner"].params == other["Tuner"].params
    assert plain["Trainer"].params != other["Trainer"].params


def test_preflight_is_there_only_where_it_is_asked_for_on_a_tpu_and_lets_the_training_run(graph, compiled):
    assert "Preflight" not in {node.id for node in compiled("train.preflight=true").graph.nodes}
    tpu = "{preflight: true, device: tpu, tpu: v5e-8, backend: jax}"
    found = compiled(f"train={tpu}", "tune.search={learning_rate: {choices: [0.1, 0.01]}}").graph

    assert set(found["Preflight"].upstream) == {"StatisticsGen", "Transform"}
    assert "workloads.taxi.model.build_model" in found["Preflight"].code
    assert found["Trainer"].gates == found["Tuner"].gates == ("Preflight",)
    own = compiled(f"train={tpu}", "preflight={limit_s: 1800, prices: {v5e: 0.9}, prices_of: 2026-11}").graph
    assert float(own["Preflight"].params["limit_s"]) == 1800
    assert own["Preflight"].params["training.prices.v5e.usd"] == "0.9"
    # The training itself is the same, with the node and without it.
    without = compiled("train={device: tpu, tpu: v5e-8, backend: jax}").graph["Trainer"]
    assert found["Trainer"].params == without.params | {
        key: value for key, value in found["Trainer"].params.items() if "hyperparameters" in key
    }


def test_code_and_files_of_the_user_are_known_to_the_cache(graph, project):
    assert "workloads.taxi.preprocessing.preprocessing_fn" in graph["Transform"].code
    assert "workloads.taxi.model.build_model" in graph["Trainer"].code
    assert graph["SchemaGen"].files == (str(project / "schemas/taxi.pbtxt"),)
    assert any(pattern.endswith("data.csv") for pattern in graph["Ingest"].data)


def test_metrics_of_one_s_own_reach_the_evaluator_and_their_code_counts(graph, compiled):
    own = "{gain: {class: tensorflow_model_analysis.metrics.MeanLabel, settings: {fare: 2}}}"
    asked = compiled(f"evaluate.own_metrics={own}", "evaluate.thresholds.gain={min: 3, max_drop: 1}").graph
    module = "tensorflow_model_analysis.metrics"
    assert [module in each["Evaluator"].code for each in (graph, asked)] == [False, True]
    told = {**asked["Evaluator"].params, **asked["ModelGate"].params}
    assert any("MeanLabel" in value for key, value in told.items() if key.startswith("eval_config"))
    assert told["thresholds.overall.gain.min"] == "3.0"


def test_a_metric_of_one_s_own_that_tfma_would_take_one_of_its_own_for_is_refused_before_the_run(compiled):
    from slipway.pipeline.errors import ConfigError

    own = "evaluate.own_metrics={gain: {class: tf_keras.metrics.AUC}}"
    for more in ([], ["beam.stock_nodes=[Evaluator]"]):
        with pytest.raises(ConfigError) as told:
            compiled(own, *more)
        assert told.value.message == (
            "evaluate.own_metrics.gain.class: tf_keras.metrics.AUC has the name of one "
            "of TensorFlow Model Analysis, which would be used instead"
        )


def test_only_the_gate_blesses(graph):
    assert graph["Baseline"].finds_baseline
    evaluator = graph["Evaluator"].params
    assert not any("hreshold" in value for key, value in evaluator.items() if key.startswith("eval_config"))
    assert "thresholds.overall.auc.min" in graph["ModelGate"].params


def test_nodes_that_are_named_keep_tfx_s_own_executor(compiled):
    def executor(node, *settings):
        return compiled(*settings).executor_spec(node).python_executor_spec.class_path

    for node, module, stock in (
        ("StatisticsGen", "statistics_gen", "tfx.components.statistics_gen.executor.Executor"),
        ("Transform", "transform", "tfx.components.transform.executor.Executor"),
        # TFX's, with slices by raw columns, and with checks of metrics of one's own.
        ("Evaluator", "evaluator", "slipway.components.evaluator.stock_executor.CheckedExecutor"),
    ):
        assert executor(node) == f"slipway.components.{module}.executor.Executor"
        assert executor(node, f"beam.stock_nodes=[{node}]") == stock


def test_local_beam_names_its_runner(compiled):
    found = compiled().executor_spec("Transform")
    assert found.beam_pipeline_args[0] == "--runner=FnApiRunner"


def test_pusher_is_ours_and_knows_where_to(graph, compiled):
    assert graph["Pusher"].params["base"].endswith('/serving/taxi"')
    assert compiled("push.destination=/srv/models").graph["Pusher"].params["base"] == '"/srv/models"'


def test_query_is_read_by_tfx_own_component(compiled):
    query = "SELECT * FROM `project.trips.all`"
    found = compiled(
        "data.format=bigquery", "data.source=null", f"data.query={query}", "data.split={train: 4, eval: 1}"
    )
    ingest = found.graph["Ingest"]
    assert ingest.type == "BigQueryExampleGen"
    assert query in ingest.params["input_config.splits"]
    assert '"hash_buckets":4' in ingest.params["output_config.split_config.splits"]
    assert {node.id: set(node.upstream) for node in found.graph.nodes} == UPSTREAM


@pytest.fixture(scope="module")
def validator():
    """Compiles a pipeline whose ExampleValidator reads what is asked of Transform's outputs; returns it."""
    from tfx import v1 as tfx
    from tfx.dsl.compiler import compiler
    from tfx.orchestration.local import runner_utils

    from slipway.pipeline.engine.tfx.parameters import fill_parameters
    from slipway.pipeline.engine.tfx.read_graph import read_graph

    def call(wire, *, run_id="r", **parameters):
        gen = tfx.components.CsvExampleGen(input_base="/data")
        schema = tfx.components.ImportSchemaGen(schema_file="/schema.pbtxt")
        transform = tfx.components.Transform(
            examples=gen.outputs["examples"], schema=schema.outputs["schema"], preprocessing_fn="mine.fn"
        )
        reads = tfx.components.ExampleValidator(
            statistics=wire(transform.outputs), schema=schema.outputs["schema"]
        )
        nodes = [gen, schema, transform, reads]
        ir = compiler.Compiler().compile(tfx.dsl.Pipeline("p", "/p", components=nodes, enable_cache=True))
        fill_parameters(ir, run_id=run_id, values={})
        for name, value in parameters.items():
            ir.nodes[-1].pipeline_node.parameters.parameters[name].field_value.string_value = value
            given = ir.nodes[-1].pipeline_node.inputs.conditionals["cond_1"].placeholder_expression
            given.value.int_value = 1
        deployment = runner_utils.extract_local_deployment_config(ir)
        return read_graph(ir, deployment, store="", written=(), packed={})["ExampleValidator"]

    return call


def test_which_output_of_a_node_an_input_reads_counts_and_so_does_the_rule(validator):
    from tfx.dsl.input_resolution.canned_resolver_functions import latest_created
    from tfx.types.channel import ExternalPipelineChannel, union

    before, after = "pre_transform_stats", "post_transform_stats"
    plain = validator(lambda made: made[before])
    assert plain.inputs == {"schema": "ImportSchemaGen.schema", "statistics": f"Transform.{before}"}
    assert plain == validator(lambda made: made[before], run_id="another")
    others = [
        validator(lambda made: made[after]),
        validator(lambda made: latest_created(made[before], n=1)),
        validator(lambda made: latest_created(made[before], n=2)),
        validator(lambda made: union([made[before], made[after]])),
        validator(lambda made: union([made[after], made[before]])),
    ]
    assert len({node.inputs["statistics"] for node in (plain, *others)}) == 6
    assert not any(node.uncached for node in others)

    def of_another_run(made):
        return ExternalPipelineChannel(
            artifact_type=made[before].type,
            owner="me",
            pipeline_name="q",
            producer_component_id="Transform",
            output_key=before,
            pipeline_run_id="z",
        )

    named = validator(of_another_run)
    assert '"z"' in named.inputs["statistics"]
    assert named.uncached == "other runs may have made more of what it reads"


def test_parameters_that_are_called_as_what_else_counts_are_told_apart(validator):
    def keys(**parameters):
        params = validator(lambda made: made["pre_transform_stats"], **parameters).params
        assert "component" not in params
        return tuple(sorted(params.items()))

    assert len({keys(condition="a"), keys(condition="b"), keys(component="a"), keys(component="b")}) == 4


@pytest.mark.parametrize("kind", ["ExecutorClassSpec", "BeamExecutorSpec"])
def test_extra_flags_of_an_executor_count(kind):
    from tfx import v1 as tfx
    from tfx.dsl.compiler import compiler
    from tfx.dsl.components.base import base_beam_executor, executor_spec
    from tfx.orchestration.local import runner_utils

    from slipway.pipeline.engine.tfx.parameters import fill_parameters
    from slipway.pipeline.engine.tfx.read_graph import read_graph

    def node(*flags):
        spec = getattr(executor_spec, kind)(base_beam_executor.BaseBeamExecutor)
        spec.add_extra_flags(flags)
        gen = tfx.components.ImportSchemaGen(schema_file="/schema.pbtxt")
        gen.executor_spec = spec
        ir = compiler.Compiler().compile(tfx.dsl.Pipeline("p", "/p", components=[gen], enable_cache=True))
        fill_parameters(ir, run_id="r", values={})
        deployment = runner_utils.extract_local_deployment_config(ir)
        return read_graph(ir, deployment, store="", written=(), packed={})["ImportSchemaGen"].params

    assert node() == node()
    assert len({tuple(node(*flags).items()) for flags in ((), ("--rate=1",), ("--rate=2",))}) == 3


def test_resolver_waits_for_what_makes_artifacts_of_its_type_before_it(tmp_path):
    from tfx import v1 as tfx
    from tfx.dsl.compiler import compiler
    from tfx.orchestration.local import runner_utils

    from slipway.pipeline.engine.tfx.compile import Compiled
    from slipway.pipeline.engine.tfx.parameters import fill_parameters
    from slipway.pipeline.engine.tfx.read_graph import read_graph
    from slipway.pipeline.engine.tfx.resolver_lookup import with_found

    def latest(name):
        channel = tfx.dsl.Channel(type=tfx.types.standard_artifacts.Examples)
        strategy = tfx.dsl.experimental.LatestArtifactStrategy
        return tfx.dsl.Resolver(strategy_class=strategy, examples=channel).with_id(name)

    gen = tfx.components.CsvExampleGen(input_base="/data")
    schema = tfx.components.ImportSchemaGen(schema_file="/schema.pbtxt")
    pipeline = tfx.dsl.Pipeline("p", "/p", components=[gen, schema, latest("window"), latest("Before")])
    ir = compiler.Compiler().compile(pipeline)
    fill_parameters(ir, run_id="r", values={})
    deployment = runner_utils.extract_local_deployment_config(ir)
    graph = read_graph(ir, deployment, store=str(tmp_path / "none.db"), written=(), packed={})
    found = with_found(Compiled(ir=ir, deployment=deployment, graph=graph), runs=None).graph
    # TFX's local runner runs nodes that nothing orders by their ids.
    assert found.ids == ("Before", "CsvExampleGen", "ImportSchemaGen", "window")
    assert found["window"].upstream == found["window"].optional == ("CsvExampleGen",)
    assert found["Before"].upstream == ()


def test_beam_options_of_the_users_own_count_and_how_it_runs_does_not():
    from tfx import v1 as tfx
    from tfx.dsl.compiler import compiler
    from tfx.orchestration.local import runner_utils

    from slipway.pipeline.engine.tfx.parameters import fill_parameters
    from slipway.pipeline.engine.tfx.read_graph import read_graph

    def params(*args):
        gen = tfx.components.CsvExampleGen(input_base="/data")
        pipeline = tfx.dsl.Pipeline("p", "/p", components=[gen], beam_pipeline_args=list(args))
        ir = compiler.Compiler().compile(pipeline)
        fill_parameters(ir, run_id="r", values={})
        deployment = runner_utils.extract_local_deployment_config(ir)
        return read_graph(ir, deployment, store="", written=(), packed={})["CsvExampleGen"].params

    assert params("--direct_num_workers=2", "--runner", "DirectRunner") == params()
    asked = params("--share=0.1", "--direct_num_workers=many", "--words", "a b")
    assert asked == {**params(), "beam_options": '["--share=0.1","--words","a b"]'}


def test_what_an_example_gen_reads_where_another_node_says_is_never_reused():
    from tfx import v1 as tfx
    from tfx.dsl.compiler import compiler
    from tfx.dsl.components.base.base_driver import BaseDriver
    from tfx.dsl.placeholder import placeholder
    from tfx.orchestration.local import runner_utils
    from tfx.types.standard_artifacts import String

    from slipway.pipeline.engine.tfx.parameters import fill_parameters
    from slipway.pipeline.engine.tfx.read_graph import read_graph

    named = tfx.dsl.Importer("/names", artifact_type=String).with_id("Names")
    place = named.outputs["result"].future()[0].value
    gen = tfx.components.CsvExampleGen(input_base=place)
    own = tfx.components.CsvExampleGen(input_base=place).with_id("Own")
    own.driver_class = BaseDriver  # so it is none: a node of one's own may call a parameter so
    variable = placeholder.environment_variable("PLACE")
    nodes = [named, gen, own, tfx.components.CsvExampleGen(input_base=variable).with_id("Variable")]
    ir = compiler.Compiler().compile(tfx.dsl.Pipeline("p", "/p", components=nodes, enable_cache=True))
    fill_parameters(ir, run_id="r", values={})
    graph = read_graph(ir, runner_utils.extract_local_deployment_config(ir), store="", written=(), packed={})
    why = "its input_base is another node's value, and what is there may have changed"
    assert graph["CsvExampleGen"].uncached == why
    assert "the environment variable PLACE" in graph["Variable"].uncached
    assert (graph["Names"].uncached, graph["Own"].uncached) == ("", "")


def test_driver_of_one_s_own_is_asked_in_every_run():
    from tfx import v1 as tfx
    from tfx.components.example_gen.driver import Driver
    from tfx.dsl.compiler import compiler
    from tfx.orchestration.local import runner_utils

    from slipway.pipeline.engine.tfx.parameters import fill_parameters
    from slipway.pipeline.engine.tfx.read_graph import read_graph

    own, stock = (tfx.components.CsvExampleGen(input_base="/a").with_id(each) for each in ("Own", "Stock"))
    own.driver_class = Driver
    nodes = [own, stock]
    ir = compiler.Compiler().compile(tfx.dsl.Pipeline("p", "/p", components=nodes, enable_cache=True))
    fill_parameters(ir, run_id="r", values={})
    graph = read_graph(ir, runner_utils.extract_local_deployment_config(ir), store="", written=(), packed={})
    assert (graph["Own"].uncached, graph["Stock"].uncached) == ("its driver may find something else", "")


def test_the_image_and_the_command_of_a_container_count():
    from tfx import v1 as tfx
    from tfx.dsl.compiler import compiler
    from tfx.dsl.component.experimental.container_component import create_container_component
    from tfx.dsl.placeholder import placeholder
    from tfx.orchestration.local import runner_utils

    from slipway.pipeline.engine.tfx.parameters import fill_parameters
    from slipway.pipeline.engine.tfx.read_graph import read_graph

    def node(image="alpine:3", word="a"):
        say = create_container_component("Say", image, ["echo", word], parameters={"container": str})
        nodes = [say(container="x")]
        ir = compiler.Compiler().compile(tfx.dsl.Pipeline("p", "/p", components=nodes, enable_cache=True))
        fill_parameters(ir, run_id="r", values={})
        deployment = runner_utils.extract_local_deployment_config(ir)
        return read_graph(ir, deployment, store="", written=(), packed={})["Say"]

    assert node() == node()
    assert len({tuple(each.params.items()) for each in (node(), node("alpine:4"), node(word="b"))}) == 3
    assert node().uncached == ""
    told = node(word=placeholder.execution_invocation().pipeline_run_id).uncached
    assert told == "its command takes pipeline_run_id of the execution, which is new in every run"


def test_the_code_of_a_driver_counts(compiled):
    found = compiled()
    assert found.driver_spec("Ingest").class_path in found.graph["Ingest"].code
