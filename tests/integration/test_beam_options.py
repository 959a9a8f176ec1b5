"""The workload's `beam` reaches every Beam node: of a local run, and of a compiled job."""

from dataclasses import replace

import pytest

from slipway.pipeline.config import WorkloadChoice, read_assignments

pytestmark = pytest.mark.slow
BEAM_NODES = {"Ingest", "StatisticsGen", "Transform", "Evaluator"}
POOL = "environment_type: EXTERNAL, environment_config: 'localhost:50000'"
FLINK = f"beam={{runner: flink, options: {{job_endpoint: 'flink:8099', {POOL}}}}}"
CLOUD = [
    "cloud={image: 'registry/slipway:1.0', root: gs://bucket/root}",
    "push.destination=gs://bucket/models",
]


@pytest.fixture
def requested(project, tmp_path):
    """A request to run the taxi workload with settings over the file."""
    from slipway.pipeline.plan.run_request import workload_request

    def call(*sets):
        path = project / "workloads/taxi/workload.yaml"
        return workload_request(WorkloadChoice(path, read_assignments(sets)), output=tmp_path, beam_args=())

    return call


def local_args(request, *more):
    from slipway.pipeline.engine.tfx.compile import compile_target

    order = replace(request.order(run_id="r", folder=request.output), beam_args=more)
    compiled = compile_target(order)
    specs = {node: compiled.executor_spec(node) for node in compiled.graph.ids}
    return {
        node: list(spec.beam_pipeline_args)
        for node, spec in specs.items()
        if hasattr(spec, "beam_pipeline_args")
    }


def test_every_beam_node_of_a_local_run_gets_the_engine_and_the_command_line_comes_last(requested):
    found = local_args(requested(FLINK), "--runner=FnApiRunner")
    assert found.keys() == BEAM_NODES
    for args in found.values():
        assert args[0] == "--runner=FlinkRunner"
        assert {"--job_endpoint=flink:8099", "--environment_type=EXTERNAL"} <= set(args)
        assert args[-1] == "--runner=FnApiRunner"
        assert args.count("--sdk_container_image=none") == 1


def test_every_container_of_a_job_gets_the_engine_and_so_does_the_driver_of_ingest(requested):
    from slipway.pipeline.cloud.compile import compile_job
    from slipway.pipeline.cloud.complete_job import container_tasks
    from slipway.pipeline.cloud.image_contents import read_image
    from slipway.pipeline.cloud.workload_in_image import Target

    target = Target.for_cloud_run(requested(FLINK, *CLOUD), read_image())
    containers = dict(container_tasks(compile_job(target)["pipelineSpec"]))
    assert containers.keys() >= BEAM_NODES
    driver = containers["Ingest"]["lifecycle"]["preCacheCheck"]
    for container in (*containers.values(), driver):
        assert [arg for arg in container["args"] if arg.startswith("--runner")] == ["--runner=FlinkRunner"]
        assert "--job_endpoint=flink:8099" in container["args"]


def test_option_that_beam_does_not_know_is_refused_with_the_nearest_one(requested):
    from slipway.pipeline.errors import ConfigError

    with pytest.raises(ConfigError, match=r"beam.options.direct_num_worker: .*nearest: direct_num_workers"):
        local_args(requested("beam.options={direct_num_worker: 2}"))
