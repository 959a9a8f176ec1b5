"""What would be submitted to Dataflow for each Beam node: the job, and what is staged for it on gs://."""

import importlib.util
import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from urllib.parse import quote

import pytest

pytestmark = pytest.mark.slow

IMAGE = "europe-docker.example/project/slipway:1.0-beam"
TRIPS = "trip_miles,fare,company,tips\n" + "".join(
    f"{i}.5,{i + 3}.0,firm{i % 3},{i % 2}.0\n" for i in range(60)
)


@pytest.fixture(scope="module")
def store(project):
    """A Cloud Storage on loopback with a bucket; the address that clients are told."""
    script = project / "tests/integration/pusher/strict_store.py"
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    address = f"http://127.0.0.1:{process.stdout.readline().strip()}"
    request = urllib.request.Request(f"{address}/_buckets/bucket", data=b"", method="PUT")  # noqa: S310
    urllib.request.urlopen(request, timeout=60).close()  # noqa: S310
    yield address
    process.terminate()
    process.wait()
    process.stdout.close()


@pytest.fixture(scope="module")
def service():
    spec = importlib.util.spec_from_file_location("dataflow_service", Path(__file__).with_name("service.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with module.Service() as found:
        yield found
        found.shutdown()


@pytest.fixture
def context(service, store, monkeypatch, tmp_path):
    """A Beam executor's context: the arguments are those that a workload's `beam` gives."""
    from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor

    from slipway.pipeline.config import BeamConfig, CloudConfig
    from slipway.pipeline.config.cloud_services import VertexConfig
    from slipway.pipeline.wiring.beam_engine import beam_args

    monkeypatch.setenv("STORAGE_EMULATOR_HOST", store)
    here = {"dataflow_endpoint": f"http://localhost:{service.server_address[1]}", "no_auth": True}
    beam = BeamConfig(
        runner="dataflow", options={"temp_location": "gs://bucket/tmp", "max_num_workers": 7, **here}
    )
    cloud = CloudConfig(image=IMAGE, vertex=VertexConfig(project="my-project", region="europe-west4"))
    return BaseBeamExecutor.Context(
        beam_pipeline_args=beam_args(beam, cloud), tmp_dir=str(tmp_path / "beam"), unique_id="1"
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Examples, as the direct runner makes them, and a schema of them."""
    from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor

    import tensorflow_data_validation as tfdv  # isort: skip  (after tfx, which patches what it imports)

    folder = tmp_path_factory.mktemp("made")
    (folder / "trips.csv").write_text(TRIPS)
    ingest(
        folder,
        BaseBeamExecutor.Context(beam_pipeline_args=["--runner=FnApiRunner", "--sdk_container_image=none"]),
    )
    statistics = tfdv.generate_statistics_from_csv(str(folder / "trips.csv"))
    (folder / "schema").mkdir()
    tfdv.write_schema_text(tfdv.infer_schema(statistics), str(folder / "schema/schema.pbtxt"))
    return folder


def artifact(kind, folder, name, **properties):
    from tfx.types import standard_artifacts

    found = getattr(standard_artifacts, kind)()
    found.uri = str(folder / name)
    for key, value in properties.items():
        setattr(found, key, value)
    return [found]


def without_workers():
    """Nobody does the work: what the workers would hand over is not there."""
    from slipway.components.errors import ComponentError

    return pytest.raises(ComponentError, match="has finished, but left no result in")


def examples_in(folder):
    return artifact("Examples", folder, "examples", split_names='["train", "eval"]')


def ingest(folder, context):
    from tfx.components.example_gen import utils
    from tfx.proto import example_gen_pb2
    from tfx.utils import proto_utils

    from slipway.components.ingest.executor import Executor
    from slipway.components.ingest.options import Options
    from slipway.schemas.artifacts import Quarantine

    quarantine = Quarantine()
    quarantine.uri = str(folder / "quarantine")
    inputs = example_gen_pb2.Input(splits=[example_gen_pb2.Input.Split(name="all", pattern="trips.csv")])
    properties = {
        "input_base": str(folder),
        "input_config": proto_utils.proto_to_json(inputs),
        "output_config": proto_utils.proto_to_json(utils.make_default_output_config(inputs)),
        "ingest": json.dumps(Options().to_json()),
    }
    Executor(context).Do({}, {"examples": examples_in(folder), "quarantine": [quarantine]}, properties)


def statistics(made, folder, context):
    from slipway.components.statistics_gen.executor import Executor

    import tensorflow_data_validation as tfdv  # isort: skip

    outputs = {"statistics": artifact("ExampleStatistics", folder, "statistics")}
    properties = {"stats_options_json": tfdv.StatsOptions().to_json(), "exclude_splits": "[]"}
    with without_workers():
        Executor(context).Do({"examples": examples_in(made)}, outputs, properties)


def transform(made, folder, context):
    from slipway.components.transform.executor import Executor

    outputs = {
        "transform_graph": artifact("TransformGraph", folder, "graph"),
        "transformed_examples": artifact("Examples", folder, "transformed"),
    }
    properties = {
        "preprocessing_fn": "a_module.doubled",
        "disable_statistics": 1,
        "force_tf_compat_v1": 0,
        "custom_config": "null",
    }
    inputs = {"examples": examples_in(made), "schema": artifact("Schema", made, "schema")}
    with without_workers(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Executor, "_function", lambda *_: doubled)
        Executor(context).Do(inputs, outputs, properties)


def doubled(inputs):
    return {"fare": 2.0 * inputs["fare"]}


def evaluate(made, folder, context):
    import tensorflow as tf
    from tfx.utils import proto_utils

    from slipway.components.evaluator.executor import Executor
    from slipway.components.model_gate.eval_config import eval_config

    class Constant(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
        def answer(self, examples):
            return {"outputs": tf.zeros([tf.shape(examples)[0], 1])}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="examples")])
        def transform(self, examples):
            return {"tips": tf.zeros([tf.shape(examples)[0], 1])}

    model = Constant()
    signatures = {"serving_default": model.answer, "transform_features": model.transform}
    tf.saved_model.save(model, str(folder / "model" / "Format-Serving"), signatures=signatures)
    config = eval_config(label="tips", metrics=["binary_accuracy"], slices=[["company"]])
    properties = {"eval_config": proto_utils.proto_to_json(config), "example_splits": "null"}
    inputs = {"examples": examples_in(made), "model": artifact("Model", folder, "model")}
    outputs = {"evaluation": artifact("ModelEvaluation", folder, "evaluation")}
    with without_workers():
        Executor(context).Do(inputs, outputs, properties)


def ingest_again(made, folder, context):
    (folder / "trips.csv").write_text(TRIPS)
    with without_workers():
        ingest(folder, context)


@pytest.mark.parametrize("node", [ingest_again, statistics, transform, evaluate])
def test_job_runs_our_image_where_the_workload_says_and_brings_no_packages(
    node, made, context, service, store, tmp_path
):
    from apache_beam.portability.api import beam_runner_api_pb2

    before = len(service.jobs)
    node(made, tmp_path, context)
    jobs = service.jobs[before:]
    assert jobs
    for job in jobs:
        assert (job["projectId"], job["location"]) == ("my-project", "europe-west4")
        environment = job["environment"]
        assert environment["tempStoragePrefix"].startswith("storage.googleapis.com/bucket/tmp/")
        [pool] = environment["workerPools"]
        assert pool["autoscalingSettings"]["maxNumWorkers"] == 7
        assert {each["containerImage"] for each in pool["sdkHarnessContainerImages"]} == {IMAGE}
        # A list for the log, which workers do not install.
        assert [each["name"] for each in pool["packages"]] == ["submission_environment_dependencies.txt"]
        graph = staged(store, environment["sdkPipelineOptions"]["options"]["pipelineUrl"])
        for each in graph.components.environments.values():
            payload = beam_runner_api_pb2.DockerPayload.FromString(each.payload)
            assert (each.urn, payload.container_image) == ("beam:env:docker:v1", IMAGE)


def staged(store, url):
    """The pipeline that was staged."""
    from apache_beam.portability.api import beam_runner_api_pb2

    bucket, _, name = url.removeprefix("gs://").partition("/")
    address = f"{store}/storage/v1/b/{bucket}/o/{quote(name, safe='')}?alt=media"
    with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310
        return beam_runner_api_pb2.Pipeline.FromString(answer.read())
