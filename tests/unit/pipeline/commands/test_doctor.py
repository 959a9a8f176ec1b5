"""The doctor names what is there, and a remedy for what is not; never what credentials hold."""

import json
from pathlib import Path

import pytest
from counted import commands_run

from slipway.components.errors import ComponentError
from slipway.pipeline.commands import doctor
from slipway.pipeline.commands.doctor import Diagnosis, Finding, examine
from slipway.pipeline.tracking import spool


def named(diagnosis, name):
    return [finding for finding in diagnosis.findings if finding.name == name]


def test_machine_packages_and_programs_are_named_and_nothing_heavy_is_asked(tmp_path):
    found = []
    commands = commands_run(lambda: found.append(examine(tmp_path, {})))
    [diagnosis] = found
    # Interpreters tell which backends they have without importing one; programs tell their version.
    heavy = ("import tensorflow", "import jax", "import torch")
    assert [command for command in commands if any(each in " ".join(command) for each in heavy)] == []
    assert len(commands) < 12
    names = {finding.name for finding in diagnosis.findings}
    assert {
        "cores",
        "memory",
        "disk",
        "tfx",
        "this one",
        "TPU",
        "GPU",
        "Docker",
        "Java",
        "Beam on Flink",
        "Beam on Spark",
        "Beam on Prism",
        "PostgreSQL",
    } <= names
    assert json.loads(json.dumps(diagnosis.to_json()))["findings"][0]["name"] == "system"


def test_every_missing_thing_has_a_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "PACKAGES", ("no-such-package",))
    monkeypatch.setattr(doctor, "MIN_FREE_DISK_BYTES", 2**60)
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    diagnosis = examine(tmp_path, {})
    missing = [finding for finding in diagnosis.findings if finding.state == "missing"]
    assert {"no-such-package", "disk"} <= {finding.name for finding in missing}
    assert all(finding.remedy for finding in missing)
    assert not diagnosis.is_ready


LACKS = {
    "memory": ("memory", lambda m: m.setattr(doctor, "MIN_FREE_MEMORY_BYTES", 2**60), {}, "end other"),
    "disk": ("disk", lambda m: m.setattr(doctor, "MIN_FREE_DISK_BYTES", 2**60), {}, "local_runner.py gc"),
    "a package": ("nope", lambda m: m.setattr(doctor, "PACKAGES", ("nope",)), {}, "make setup"),
    "hosts": ("hosts", None, {"TPU_WORKER_HOSTNAMES": "a,b", "TPU_WORKER_ID": "7"}, "hosts"),
    "the second interpreter": (
        ".venv-jax", lambda m: m.setattr(doctor, "PROJECT_ROOT", Path("/nowhere")), {}, "make jax"
    ),
    "a TPU": ("TPU", None, {}, "preflight"),
    "a GPU": ("GPU", lambda m: m.setattr(doctor, "find_evidence", lambda _: []), {}, "driver"),
    "credentials": ("Google Cloud", None, {"CLOUDSDK_CONFIG": "/nowhere"}, "gcloud auth"),
    "the file of credentials": (
        "Google Cloud", None, {"GOOGLE_APPLICATION_CREDENTIALS": "/no.json"}, "unset that variable"
    ),
    "Java": ("Java", lambda m: m.setattr(doctor.shutil, "which", lambda _: None), {}, "apt install"),
    "Docker": ("Docker", lambda m: m.setattr(doctor.shutil, "which", lambda _: None), {}, "install Docker"),
    "Docker's daemon": (
        "Docker",
        lambda m: m.setattr(doctor.shutil, "which", lambda name: {"docker": "/bin/docker"}.get(name)),
        {"DOCKER_HOST": "unix:///nowhere"},
        "systemctl start docker",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("name", "take_away", "environment", "remedy"), LACKS.values(), ids=LACKS)
def test_what_this_machine_lacks_is_reported_with_its_remedy(
    tmp_path, monkeypatch, name, take_away, environment, remedy
):
    if take_away:
        take_away(monkeypatch)
    monkeypatch.setattr(doctor, "_ask", lambda *_: {})  # other interpreters are not the matter
    found = named(examine(tmp_path, environment), name)
    assert found
    assert all(each.state != "ok" and remedy in each.remedy for each in found)


def test_an_empty_address_of_docker_is_none():
    unset, empty = (doctor._docker("programs", "/bin/docker", each) for each in ({}, {"DOCKER_HOST": ""}))
    assert empty == unset


def test_without_a_home_folder_there_are_no_credentials_in_it(monkeypatch):
    def nameless(_):
        raise KeyError("uid not found")

    monkeypatch.delenv("HOME")
    monkeypatch.setattr("pwd.getpwuid", nameless)
    [found] = doctor._credentials({})
    assert found.state == "none"


def test_key_in_place_of_the_path_of_its_file_is_not_repeated():
    [found] = doctor._credentials({"GOOGLE_APPLICATION_CREDENTIALS": "c2VjcmV0" * 100})
    assert (found.state, "c2VjcmV0" in f"{found.found}{found.remedy}") == ("none", False)


def test_an_interpreter_that_does_not_start_is_reported_with_its_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(
        doctor, "_ask", lambda python, code, _: {"backends": {"torch": "2"}} if "importlib" in code else {}
    )
    found = named(examine(tmp_path, {}, deep=True), "this one, torch")
    assert [(each.state, each.found) for each in found] == [("missing", "does not start")]
    assert "import torch" in found[0].remedy


def test_an_interpreter_that_fails_is_not_said_to_have_no_backend(tmp_path, monkeypatch):
    (tmp_path / ".venv-jax/bin").mkdir(parents=True)
    python = tmp_path / ".venv-jax/bin/python"
    python.write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
    python.chmod(0o755)
    monkeypatch.setattr(doctor, "PROJECT_ROOT", tmp_path)

    mine, second = doctor._interpreters(deep=False)

    assert (mine.state, "keras" in mine.found) == ("ok", True)
    assert (second.state, second.found) == ("none", f"{python}: fails, or does not answer within 5 s")
    assert str(python) in second.remedy


def test_nothing_is_called_missing_without_a_remedy():
    with pytest.raises(ValueError, match="nothing says what to do"):
        Finding(group="machine", name="disk", state="missing", found="0 GB")


def test_variable_of_a_tpu_is_shown_as_evidence(tmp_path):
    found = [each.found for each in named(examine(tmp_path, {"TPU_NAME": "my-node"}), "TPU")]
    assert "TPU_NAME is my-node" in found


@pytest.mark.parametrize(
    ("fails", "state", "words"), [(True, "none", "no TPU answers"), (False, "ok", "answers")]
)
def test_a_tpu_that_does_not_answer_is_not_marked_as_there(monkeypatch, fails, state, words):
    def contact(_address):
        if fails:
            raise ComponentError("no TPU answers at host:8470", hint="check that the TPU runs")

    monkeypatch.setattr(doctor, "require_reachable", contact)
    monkeypatch.setattr(doctor.shutil, "which", lambda _: None)

    tpu, *_ = doctor._accelerators({"TPU_NAME": "grpc://host:8470"}, deep=True)

    assert (tpu.state, tpu.found) == (
        state,
        f"TPU_NAME is grpc://host:8470; {words}" + " at host:8470" * fails,
    )
    assert bool(tpu.remedy) == fails


def test_only_what_was_looked_for_is_named(monkeypatch):
    monkeypatch.setattr(doctor, "find_evidence", lambda _: ())
    tpu, *_ = doctor._accelerators({}, deep=False)
    assert tpu.found.startswith("none; looked for the variables COLAB_TPU_ADDR")


def test_hosts_that_contradict_each_other_are_shown(tmp_path):
    [hosts] = named(examine(tmp_path, {"TPU_WORKER_HOSTNAMES": "a,b", "TPU_WORKER_ID": "7"}), "hosts")
    assert (hosts.state, hosts.found) == (
        "missing",
        "TPU_WORKER_HOSTNAMES: this is host 7 of 2, counted from 0",
    )


@pytest.mark.parametrize("there", [True, False])
def test_credentials_are_found_and_their_content_is_not_shown(tmp_path, there):
    file = tmp_path / "key.json"
    if there:
        file.write_text('{"private_key": "hidden words"}')
    diagnosis = examine(tmp_path, {"GOOGLE_APPLICATION_CREDENTIALS": str(file)})
    [found] = named(diagnosis, "Google Cloud")
    assert found.state == ("ok" if there else "none")
    assert str(file) in found.found
    assert "hidden words" not in diagnosis.text() + json.dumps(diagnosis.to_json())


def test_text_shows_groups_marks_and_remedies():
    diagnosis = Diagnosis(
        (
            Finding(group="machine", name="cores", state="ok", found="2 usable"),
            Finding(
                group="programs", name="Java", state="none", found="not installed", remedy="apt install x"
            ),
        )
    )
    assert diagnosis.text().splitlines() == [
        "machine",
        "  ✓ cores  2 usable",
        "programs",
        "  - Java   not installed",
        "           to have it: apt install x",
    ]


def test_modules_in_the_current_folder_are_not_run(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    assert "backends" in doctor._ask(Path(doctor.sys.executable), doctor._VERSIONS, 60)
    assert not (tmp_path / "ran").exists()


def test_interpreter_that_hangs_is_given_up(monkeypatch):
    python = Path(doctor.sys.executable)
    # As long as pytest lets a test take, and longer.
    assert doctor._ask(python, "import time; time.sleep(3600)", 0.5) == {}


LEAVES = "each run leaves one for 15 minutes (SLIPWAY_WARM_MINUTES)"


@pytest.mark.parametrize(
    ("variables", "pids", "found", "has_remedy"),
    [
        ({}, [], "none", True),
        ({"SLIPWAY_WARM_MINUTES": "15"}, [], f"none; {LEAVES}", False),
        ({"SLIPWAY_WARM_MINUTES": "x"}, [], "SLIPWAY_WARM_MINUTES is 'x'; it must be", True),
        ({"SLIPWAY_WARM_MINUTES": "15"}, [7], f"7; {LEAVES}; to end: ", False),
    ],
)
def test_warm_processes_and_whether_runs_leave_one_are_reported(
    tmp_path, monkeypatch, variables, pids, found, has_remedy
):
    monkeypatch.setattr(doctor.standby, "waiting", lambda: pids)
    [told] = named(examine(tmp_path, variables), "warm process")
    assert told.found.startswith(found)
    assert bool(told.remedy) == has_remedy


def test_runs_that_a_tracker_has_missed_are_reported_with_the_command_that_sends_them(tmp_path):
    assert [each for each in examine(tmp_path, {}).findings if each.group == "trackers"] == []
    spool.put(tmp_path, spool.Waiting("20261124-030000-0000", 0, {"mlflow": "answered 500"}))
    diagnosis = examine(tmp_path, {})
    [finding] = named(diagnosis, "mlflow")
    assert (finding.state, finding.found) == ("none", "1 run not yet sent to it: answered 500")
    assert "local_runner.py track" in finding.remedy
