"""What Beam nodes are told, and what is refused before they start."""

import importlib.util
import socket
from pathlib import Path

import pytest
from taxi_workload import taxi_workload

from slipway.pipeline.config import BeamConfig, CloudConfig
from slipway.pipeline.errors import ConfigError
from slipway.pipeline.wiring import beam_engine
from slipway.pipeline.wiring.beam_engine import (
    NO_PACKAGE,
    beam_args,
    check_cloud_engine,
    check_engine,
    completed_args,
)

IMAGE = "registry/slipway:1"
NOWHERE, CLOUD = CloudConfig(), CloudConfig(image=IMAGE)
DATAFLOW = {"project": "p", "region": "r", "temp_location": "gs://bucket/tmp"}


@pytest.fixture
def engines(tmp_path, monkeypatch):
    """A folder of engines in which every program is there, on a machine with Java."""
    programs = {}
    for runner, (option, _, remedy) in beam_engine._PROGRAMS.items():
        path = tmp_path / runner
        path.touch()
        programs[runner] = (option, path, remedy)
    monkeypatch.setattr(beam_engine, "_PROGRAMS", programs)
    monkeypatch.setattr(beam_engine.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setenv("SLIPWAY_OPEN_PORTS", "1")
    return tmp_path


def test_default_is_the_runner_inside_the_process_and_no_package_of_our_code():
    assert beam_args(BeamConfig(), NOWHERE) == ["--runner=FnApiRunner", "--sdk_container_image=none"]


def test_options_become_arguments_and_come_after_what_they_override():
    options = {"parallelism": 4, "experiments": ("a", "b=1"), "save_main_session": True, "update": False}
    args = beam_args(BeamConfig(runner="flink", options={**options, "flink_version": "1.20"}), NOWHERE)
    assert args[0] == "--runner=FlinkRunner"
    assert args[-4:] == ["--parallelism=4", "--experiments=a", "--experiments=b=1", "--save_main_session"]
    assert "--flink_version=1.20" in args
    assert "--flink_version=1.19" not in args


def test_a_switch_that_beam_turns_off_by_a_name_of_its_own_is_turned_off():
    """Dataflow's workers had public addresses despite `use_public_ips: false`."""
    options = {"use_public_ips": False, "streaming": False}
    assert beam_args(BeamConfig(options=options), NOWHERE)[2:] == ["--no_use_public_ips"]
    assert "--use_public_ips" in beam_args(BeamConfig(options={"use_public_ips": True}), NOWHERE)


@pytest.mark.parametrize("runner", ["prism", "flink", "spark"])
def test_program_that_make_fetched_is_named_unless_a_job_server_is(runner):
    option = beam_engine._PROGRAMS[beam_engine.RUNNERS[runner]][0]
    assert any(arg.startswith(f"--{option}=") for arg in beam_args(BeamConfig(runner=runner), NOWHERE))
    elsewhere = beam_args(BeamConfig(runner=runner, options={"job_endpoint": "host:8099"}), NOWHERE)
    assert not any(arg.startswith(f"--{option}=") for arg in elsewhere)


def test_workers_in_containers_run_the_image_of_cloud_runs_unless_another_is_named():
    assert f"--sdk_container_image={IMAGE}" in beam_args(BeamConfig(runner="dataflow"), CLOUD)
    own = BeamConfig(runner="dataflow", options={"sdk_container_image": "mine:1"})
    assert [arg for arg in beam_args(own, CLOUD) if "image" in arg] == ["--sdk_container_image=mine:1"]
    docker = BeamConfig(runner="flink", options={"environment_type": "DOCKER"})
    assert f"--sdk_container_image={IMAGE}" in beam_args(docker, CLOUD)
    assert "--sdk_container_image=none" in beam_args(BeamConfig(), CLOUD)


@pytest.mark.parametrize("runner", ["direct", "prism", "flink", "spark"])
def test_engine_that_is_there_is_not_refused(engines, runner):
    check_engine(beam_args(BeamConfig(runner=runner), NOWHERE))


@pytest.mark.parametrize(
    ("runner", "remedy"), [("prism", "make prism"), ("flink", "make flink"), ("spark", "make spark")]
)
def test_missing_program_is_refused_with_the_command_that_fetches_it(engines, runner, remedy):
    args = beam_args(BeamConfig(runner=runner), NOWHERE)
    for path in engines.iterdir():
        path.unlink()
    with pytest.raises(ConfigError, match=f"beam.runner: {runner} needs .* which does not exist") as caught:
        check_engine(args)
    assert remedy in caught.value.hint


def test_missing_java_is_refused_with_its_package(engines, monkeypatch):
    monkeypatch.setattr(beam_engine.shutil, "which", lambda name: None)
    with pytest.raises(ConfigError, match="flink needs Java, and there is no java here") as caught:
        check_engine(beam_args(BeamConfig(runner="flink"), NOWHERE))
    assert "default-jre-headless" in caught.value.hint
    check_engine(beam_args(BeamConfig(runner="prism"), NOWHERE))  # written in Go


def test_job_server_that_does_not_answer_is_refused():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        host, port = server.getsockname()
        args = beam_args(BeamConfig(runner="flink", options={"job_endpoint": f"{host}:{port}"}), NOWHERE)
        with pytest.raises(ConfigError, match=r"job_endpoint: nothing answers at 127.0.0.1:\d+") as caught:
            check_engine(args)
        assert "set beam.runner=direct" in caught.value.hint
        check_engine(beam_args(BeamConfig(options={"job_endpoint": f"{host}:{port}"}), NOWHERE))
        server.listen()
        check_engine(args)


def test_worker_pool_that_does_not_answer_is_refused_with_the_command_that_starts_one():
    with socket.socket() as server, socket.socket() as pool:
        server.bind(("127.0.0.1", 0))
        server.listen()
        pool.bind(("127.0.0.2", 0))
        address = "{}:{}".format(*pool.getsockname())
        options = {"job_endpoint": f"127.0.0.1:{server.getsockname()[1]}", "environment_type": "EXTERNAL"}

        def check(**more):
            check_engine(beam_args(BeamConfig(runner="flink", options={**options, **more}), NOWHERE))

        with pytest.raises(ConfigError, match="environment_config is not set; HOST:PORT of a worker pool"):
            check()
        with pytest.raises(ConfigError, match=f"environment_config: nothing answers at {address}") as caught:
            check(environment_config=address)
        assert f"python -m slipway.components.beam_worker_pool {address}" in caught.value.hint
        pool.listen()
        check(environment_config=address)
        check(
            environment_config="localhost:1"
        )  # beside each worker of the engine, which this machine cannot see


def test_address_without_a_port_is_refused(engines):
    with pytest.raises(ConfigError, match="flink_master: http://cluster must be HOST:PORT"):
        check_engine(
            beam_args(BeamConfig(runner="flink", options={"flink_master": "http://cluster"}), NOWHERE)
        )


def test_local_run_on_dataflow_is_refused_even_from_the_command_line():
    with pytest.raises(ConfigError, match="do not see this machine's disk"):
        check_engine([*beam_args(BeamConfig(), NOWHERE), "--runner=DataflowRunner"])


@pytest.mark.parametrize("missing", ["project", "region", "temp_location"])
def test_dataflow_without_what_it_needs_is_refused(missing):
    options = {name: value for name, value in DATAFLOW.items() if name != missing}
    with pytest.raises(ConfigError, match=f"beam.options.{missing} is not set; Dataflow needs it"):
        check_cloud_engine(BeamConfig(runner="dataflow", options=options), CLOUD)


def test_dataflow_runs_where_vertex_does_unless_told_otherwise():
    sets = [
        "cloud.vertex={project: ours, region: europe-west4}",
        "beam={runner: dataflow, options: {region: us-east1}}",
    ]
    config = taxi_workload(*sets)
    args = beam_args(config.beam, config.cloud)
    assert "--project=ours" in args
    assert [arg for arg in args if arg.startswith("--region")] == ["--region=us-east1"]


def test_dataflow_works_as_the_account_and_with_the_key_of_the_tasks_unless_told_otherwise():
    key = "projects/p/locations/europe-west4/keyRings/r/cryptoKeys/k"

    def args(options):
        sets = [
            f"cloud.vertex={{service_account: a@p.iam.gserviceaccount.com, encryption_key: {key}}}",
            f"beam={{runner: dataflow, options: {options}}}",
        ]
        config = taxi_workload(*sets)
        return beam_args(config.beam, config.cloud)

    assert {"--service_account_email=a@p.iam.gserviceaccount.com", f"--dataflow_kms_key={key}"} <= {*args({})}
    assert "--service_account_email=b@p" in args("{service_account_email: b@p}")


def test_dataflow_needs_an_image_and_places_on_gs():
    check_cloud_engine(BeamConfig(runner="dataflow", options=DATAFLOW), CLOUD)
    with pytest.raises(ConfigError, match="sdk_container_image is not set"):
        check_cloud_engine(BeamConfig(runner="dataflow", options=DATAFLOW), NOWHERE)
    here = {**DATAFLOW, "temp_location": "/scratch/x"}
    with pytest.raises(ConfigError, match="temp_location: /scratch/x must be gs://BUCKET/PATH"):
        check_cloud_engine(BeamConfig(runner="dataflow", options=here), CLOUD)


@pytest.mark.parametrize(
    ("runner", "options", "words"),
    [
        ("prism", {}, "prism_location is not set; the image has no Prism"),
        ("flink", {}, "job_endpoint is not set; HOST:PORT of a Beam job server of your flink cluster"),
        ("spark", {"job_endpoint": "s:1"}, "environment_type is not set; EXTERNAL"),
        ("flink", {"job_endpoint": "s:1", "environment_type": "LOOPBACK"}, "LOOPBACK is for one machine"),
        ("flink", {"job_endpoint": "localhost:8099"}, "job_endpoint: localhost:8099 is on the machine that"),
        ("flink", {"job_endpoint": "s:1", "environment_type": "EXTERNAL"}, "environment_config is not set"),
    ],
)
def test_job_for_the_cloud_that_needs_this_machine_is_refused(runner, options, words):
    with pytest.raises(ConfigError, match=words):
        check_cloud_engine(BeamConfig(runner=runner, options=options), CLOUD)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("beam.runner=flnk", "beam.runner"),
        ("beam.options={runner: FlinkRunner}", "is not allowed here; set beam.runner"),
        ("beam.options={--parallelism: 4}", "beam.options"),
    ],
)
def test_wrong_key_in_the_workload_is_refused(setting, words):
    with pytest.raises(ConfigError, match=words):
        taxi_workload(setting)


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("s3_secret_access_key", "export AWS_SECRET_ACCESS_KEY instead"),
        ("azure_connection_string", "export AZURE_STORAGE_CONNECTION_STRING instead"),
        ("some_password", "give it to the engine through its environment instead"),
    ],
)
def test_secret_among_the_options_is_refused_and_not_repeated(name, remedy):
    for setting in (f"beam.options.{name}=hunter2", f"beam.options={{{name}: hunter2}}"):
        with pytest.raises(ConfigError, match=remedy) as refused:
            taxi_workload(setting)
        assert "hunter2" not in refused.value.message
    with pytest.raises(ConfigError, match=f"--{name} is a secret, .*{remedy}") as refused:
        check_engine([f"--{name}=hunter2"])
    assert "hunter2" not in refused.value.message


@pytest.mark.parametrize("runner", ["Flnk", "nope"])
def test_a_runner_that_beam_does_not_know_is_refused_before_anything_runs(runner):
    with pytest.raises(ConfigError, match=f"--runner={runner}: Beam has no such runner") as refused:
        check_engine([f"--runner={runner}"])
    assert "FnApiRunner" in refused.value.hint


@pytest.mark.parametrize("runner", ["DirectRunner", "directrunner", "direct", "my.own.Runner", ""])
def test_a_runner_that_beam_knows_is_taken_as_beam_takes_it(runner):
    check_engine([f"--runner={runner}"])


def test_the_known_runners_are_those_of_beam():
    options = Path(str(importlib.util.find_spec("apache_beam").submodule_search_locations[0]))
    text = (options / "options" / "pipeline_options.py").read_text(encoding="utf-8")
    assert all(f".{name}'" in text for name in beam_engine._KNOWN_TO_BEAM)


@pytest.mark.parametrize(
    ("own", "more", "added"),
    [
        ([], [], []),
        (["--streaming"], [], [NO_PACKAGE]),
        (["--runner=DirectRunner"], [], [NO_PACKAGE]),
        ([NO_PACKAGE], ["--streaming"], ["--streaming"]),
        (["--a=1"], ["--a=1", "--b=2"], ["--b=2", NO_PACKAGE]),
        ([], ["--runner=FnApiRunner"], ["--runner=FnApiRunner", NO_PACKAGE]),
        (["--runner=DataflowRunner"], [], []),
    ],
)
def test_no_runner_is_named_to_a_pipeline_of_the_users_own(own, more, added):
    assert completed_args(own, more) == added


def test_mode_that_opens_ports_is_refused_to_a_pipeline_of_the_users_own():
    with pytest.raises(ConfigError, match="opens ports"):
        completed_args(["--direct_running_mode=multi_processing"], [])
