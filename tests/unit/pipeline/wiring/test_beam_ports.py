"""No Beam runner listens on the network unasked."""

import pytest

from slipway.pipeline.errors import ConfigError
from slipway.pipeline.wiring.beam_ports import IN_PROCESS, OPEN_PORTS_VARIABLE, without_ports


@pytest.fixture(autouse=True)
def asked_for_nothing(monkeypatch):
    monkeypatch.delenv(OPEN_PORTS_VARIABLE, raising=False)


@pytest.mark.parametrize(
    "args",
    [
        ["--direct_running_mode=multi_processing"],
        ["--direct_running_mode", "multi_processing"],
        ["--direct_running_mode=in_memory", "--direct_running_mode=multi_threading"],
        [IN_PROCESS, "--direct_num_workers=4", "--direct_running_mode=multi_processing"],
    ],
)
def test_modes_whose_workers_are_reached_through_ports_are_refused(args, monkeypatch):
    with pytest.raises(ConfigError, match=r"direct_running_mode: multi_\w+ opens ports") as refused:
        without_ports(args)
    assert "--beam=--direct_running_mode=in_memory" in refused.value.hint
    monkeypatch.setenv(OPEN_PORTS_VARIABLE, "1")  # for engines, which can be had in no other way
    with pytest.raises(ConfigError):
        without_ports(args)


def test_mode_that_a_pipeline_sets_is_taken_back_on_the_command_line():
    args = [IN_PROCESS, "--direct_running_mode=multi_processing", "--direct_running_mode=in_memory"]
    assert without_ports(args) == args


@pytest.mark.parametrize(
    "runner",
    [
        "FlinkRunner", "flink", "SPARKRUNNER", "PrismRunner", "PortableRunner", "InteractiveRunner",
        "apache_beam.runners.portability.flink_runner.FlinkRunner",
    ],
)  # fmt: skip
def test_engine_that_listens_is_refused_unless_the_machine_is_said_to_be_for_it(runner, monkeypatch):
    args = [f"--runner={runner}"]
    with pytest.raises(ConfigError, match="listens on all network interfaces") as refused:
        without_ports(args)
    assert f"export {OPEN_PORTS_VARIABLE}=1" in refused.value.hint
    monkeypatch.setenv(OPEN_PORTS_VARIABLE, "1")
    assert without_ports(args) == args


@pytest.mark.parametrize("runner", ["FlinkRunner", "SparkRunner", "PortableRunner"])
def test_job_server_that_runs_already_is_no_port_of_ours(runner):
    args = [f"--runner={runner}", "--job_endpoint=cluster:8099"]
    assert without_ports(args) == args


@pytest.mark.parametrize("args", [[], ["--runner=DirectRunner"], ["--runner", "direct"], ["--streaming"]])
def test_beams_default_becomes_the_runner_inside_the_process(args):
    # Beam's own default would try to download Prism, which listens on all interfaces.
    assert without_ports(args) == [*args, IN_PROCESS]


@pytest.mark.parametrize("runner", ["FnApiRunner", "BundleBasedDirectRunner", "my.own.FlinkRunner"])
def test_what_opens_no_port_and_what_is_somebodys_own_stays(runner):
    assert without_ports([f"--runner={runner}"]) == [f"--runner={runner}"]
