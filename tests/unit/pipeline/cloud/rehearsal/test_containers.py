"""Tasks in containers: the command, what a container's end means, and what is refused before one starts.

A script stands for Podman; tests/integration/cloud/test_containers.py runs the real one.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from small_workload import small_workload

from slipway.components.errors import ComponentError, GateStopError
from slipway.components.project import PROJECT_ROOT
from slipway.pipeline.cloud.rehearsal.containers import (
    Containers,
    containers_of,
    output,
    remove_left,
    stores_of,
)
from slipway.pipeline.runs.run_target import ImageModuleRun, ImageRun

CONTAINER = {"image": "i:1", "resources": {"cpuLimit": 64.0, "memoryLimit": 1.5}}


@pytest.fixture
def containers(program, tmp_path):
    return Containers(
        program=program("exit 0"),
        image="12ab",
        user=os.getuid(),
        rehearsals="/rehearsals",
        folders=(str(tmp_path / "artifacts"),),
        is_online=False,
    )


# A process of its own: who forks the one that runs the tests also gets the locks of its threads.
TASK = """
import json, sys
from slipway.pipeline.cloud.rehearsal.containers import Containers
from slipway.pipeline.engine.processes.os_processes import adopt_orphans
adopt_orphans()
fields, name, container = json.loads(sys.argv[1])
Containers(**fields).run(name, container, [], writable=())
"""


def in_a_process(containers, name):
    """A task's process that runs one container."""
    fields = json.dumps([asdict(containers), name, CONTAINER])
    return subprocess.Popen([sys.executable, "-c", TASK, fields], cwd=PROJECT_ROOT)


def asked(containers, container, words):
    """The command, for a machine of two cores."""
    return containers.command("n", container, words, temporary=Path("/own"), variables={}, cores=2)


def following(words, flag):
    return [words[i + 1] for i, word in enumerate(words) if word == flag]


def test_container_gets_its_image_the_job_s_limits_its_folders_and_no_more(containers):
    words = asked(containers, CONTAINER, ["python", "-m", "x"])
    first = ["--entrypoint", "timeout", "12ab"]  # which passes SIGTERM on, whatever the image begins with
    assert words[-7:] == [*first, "0", "python", "-m", "x"]
    assert asked(containers, CONTAINER, ["timeout", "9", "a"])[-5:] == [*first, "9", "a"]
    assert following(words, "--memory") == following(words, "--memory-swap") == ["1500000000"]
    assert following(words, "--cpus") == ["2"], "no engine gives more cores than there are"
    here = containers.folders[0]
    assert following(words, "--mount") == ["type=bind,src=/own,dst=/tmp", f"type=bind,src={here},dst={here}"]
    assert following(words, "--env") == ["SLIPWAY_FAILURE=/tmp/failure.json"]
    assert following(words, "--network") == ["none"]
    assert "--http-proxy=false" in words
    assert following(words, "--cap-drop") == ["all"]
    assert following(words, "--pull") == ["never"]
    assert following(words, "--log-driver") == ["none"], "what it prints is in the task's log alone"
    assert "--read-only" in words


def test_a_bucket_needs_the_network_and_a_copy_of_the_account_but_no_value_is_on_the_command_line(
    containers, program, tmp_path, monkeypatch
):
    key = tmp_path / "key.json"
    key.write_text('{"private": "hush"}')
    key.chmod(0o600)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key))
    monkeypatch.setenv("GOOGLE_SECRET", "hush")
    seen = tmp_path / "seen"
    own = r"$(printf '%s\n' \"$@\" | sed -n 's/^type=bind,src=\(.*\),dst=.tmp$/\1/p')"
    line = f"ls -ln {own} | tee {seen}; cat {own}/GOOGLE_APPLICATION_CREDENTIALS >>{seen}".replace('\\"', '"')
    replace(containers, program=program(line), is_online=True).run("n", CONTAINER, [], writable=())
    words = (tmp_path / "asked").read_text()
    assert "--network private" in words
    assert "--env GOOGLE_APPLICATION_CREDENTIALS=/tmp/GOOGLE_APPLICATION_CREDENTIALS" in words
    assert "--env GOOGLE_SECRET " in words
    assert "hush" not in words
    assert '{"private": "hush"}' in seen.read_text()
    assert "-rw-------" in seen.read_text(), "nobody else reads it"


@pytest.mark.parametrize(("name", "own"), [("podman", "private"), ("docker", "bridge")])
def test_a_network_is_the_container_s_own_unless_what_it_is_told_of_listens_on_loopback(
    containers, name, own
):
    online = replace(containers, program=f"/usr/bin/{name}", is_online=True)
    for variables, network in (
        ({"GOOGLE_CLOUD_PROJECT": "p", "no_proxy": "localhost,127.0.0.1"}, own),
        ({"STORAGE_EMULATOR_HOST": "http://127.0.0.1:4443"}, "host"),
    ):
        words = online.command("n", CONTAINER, [], temporary=Path("/own"), variables=variables, cores=2)
        assert following(words, "--network") == [network], variables


def test_of_gcloud_s_folder_a_container_gets_no_more_than_the_login_for_programs(
    containers, program, tmp_path, monkeypatch
):
    folder = tmp_path / "gcloud"
    folder.mkdir()
    (folder / "application_default_credentials.json").write_text("{}")
    (folder / "credentials.db").write_text("of every account")
    (folder / "link").symlink_to("/nowhere/at/all")
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.delenv("CURL_CA_BUNDLE", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(folder))
    line = f"{LEAVES} find $own -type f >{tmp_path}/seen; done"
    replace(containers, program=program(line), is_online=True).run("n", CONTAINER, [], writable=())
    [copied] = (tmp_path / "seen").read_text().splitlines()
    assert copied.endswith("/CLOUDSDK_CONFIG/application_default_credentials.json")
    assert "--env CLOUDSDK_CONFIG=/tmp/CLOUDSDK_CONFIG" in (tmp_path / "asked").read_text()


def test_certificates_of_a_store_are_copied_into_the_container(containers, program, tmp_path, monkeypatch):
    (tmp_path / "store.pem").write_text("the store's certificate")
    monkeypatch.setenv("CURL_CA_BUNDLE", str(tmp_path / "store.pem"))
    line = f"{LEAVES} cat $own/CURL_CA_BUNDLE >{tmp_path}/seen; done"
    online = replace(containers, program=program(line), is_online=True)
    online.run("n", CONTAINER, [], writable=())
    assert (tmp_path / "seen").read_text() == "the store's certificate"
    assert "--env CURL_CA_BUNDLE=/tmp/CURL_CA_BUNDLE" in (tmp_path / "asked").read_text()
    replace(online, program=program("exit 0"), is_online=False).run("n", CONTAINER, [], writable=())
    assert "CURL_CA_BUNDLE" not in (tmp_path / "asked").read_text().splitlines()[-1]


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_what_is_given_to_the_containers_user_is_no_file_elsewhere_that_a_link_leads_to(
    containers, program, tmp_path
):
    (tmp_path / "mine").write_text("")
    (tmp_path / "task" / "deep").mkdir(parents=True)
    (tmp_path / "task" / "deep" / "a").write_text("")
    (tmp_path / "task" / "link").symlink_to(tmp_path)
    (tmp_path / "task" / "deep" / "link").symlink_to(tmp_path / "mine")
    theirs = replace(containers, user=10001, rehearsals=str(tmp_path))
    theirs.run("n", CONTAINER, [], writable=[tmp_path / "task"])
    owners = {str(each.relative_to(tmp_path)): each.lstat().st_uid for each in tmp_path.rglob("*")}
    assert {name for name, owner in owners.items() if owner == 10001} == {
        "task", "task/deep", "task/deep/a", "task/deep/link", "task/link",
    }  # fmt: skip


@pytest.mark.parametrize("name", ["podman", "docker"])
def test_whoever_is_not_root_owns_what_the_tasks_write(containers, monkeypatch, name):
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    monkeypatch.setattr(os, "getgid", lambda: 100)
    words = asked(replace(containers, program=f"/usr/bin/{name}"), {"image": "i:1"}, [])
    assert following(words, "--user") == ["1000:100"]
    assert following(words, "--userns") == (["keep-id"] if name == "podman" else [])
    assert not following(words, "--memory") + following(words, "--cpus"), "the job gives no limits"


def test_a_container_that_ends_well_says_nothing_and_finds_its_folders(containers, tmp_path):
    containers.run("n", CONTAINER, ["true"], writable=[tmp_path / "task"])
    assert Path(containers.folders[0]).is_dir()
    assert (tmp_path / "task").is_dir()


def test_places_of_folders_below_tmp_are_made_here_where_they_can_be_removed(containers, program, tmp_path):
    # Podman without root makes what is missing as another user.
    folder = Path("/tmp", "slipway-of-this-test", tmp_path.name)  # noqa: S108
    line = f"{LEAVES} [ -d $own/slipway-of-this-test/{tmp_path.name} ] && touch {tmp_path}/seen; done"
    below = replace(containers, program=program(line), folders=(str(folder),))
    try:
        below.run("n", CONTAINER, [], writable=())
    finally:
        shutil.rmtree(folder.parent)
    assert (tmp_path / "seen").exists()


LEAVES = r"""printf '%s\n' "$@" | sed -n 's/^type=bind,src=\(.*\),dst=.tmp$/\1/p' | while read -r own; do"""


def test_the_error_that_a_container_left_is_the_error_however_much_it_said(containers, program, capfd):
    left = {"message": "no such column: a", "hint": "name another", "start": "Ingest", "verdict": None}
    lines = [f"{LEAVES} echo '{json.dumps(left)}' >$own/failure.json; done", "seq 9999 >&2; exit 1"]
    with pytest.raises(ComponentError) as caught:
        replace(containers, program=program(*lines)).run("n", CONTAINER, [], writable=())
    assert (caught.value.message, caught.value.hint) == ("no such column: a", "name another")
    assert caught.value.start == "Ingest"
    assert "9998" in capfd.readouterr().err, "the log has it all"


def test_a_gate_s_refusal_keeps_its_whole_verdict(containers, program):
    verdict = {"message": "worse", "lines": ["auc 0.5"], "override": "bless", "findings": [{"a": 1}]}
    left = {"message": "worse", "hint": "", "start": "", "verdict": verdict}
    lines = [f"{LEAVES} echo '{json.dumps(left)}' >$own/failure.json; done", "exit 3"]
    with pytest.raises(GateStopError) as caught:
        replace(containers, program=program(*lines)).run("n", CONTAINER, [], writable=())
    assert caught.value.verdict == verdict


@pytest.mark.parametrize(
    ("lines", "words", "message"),
    [
        (["echo 'error: tries again' >&2", "echo 'ValueError: bad' >&2", "exit 1"], [], "1: ValueError: bad"),
        (["exit 5"], [], "the container ended with code 5"),
        (["exit 124"], ["timeout", "9", "a"], "the container was ended by its task's time limit"),
        (["exit 124"], ["a"], "the container ended with code 124"),
        (["exit 137"], ["a"], "the container, which had 1.5 GB, was killed, as happens when memory runs out"),
        (["exit 137"], ["timeout", "9", "a"], "when memory runs out or by its time limit"),
        (["printf '%070000d' 1 >&2", "exit 4"], [], "0" * 500),
    ],
)
def test_what_a_container_without_an_error_of_ours_ended_with_is_reported(
    containers, program, lines, words, message
):
    with pytest.raises(ComponentError) as caught:
        replace(containers, program=program(*lines)).run("n", CONTAINER, words, writable=())
    assert caught.value.message.endswith(message)
    assert len(caught.value.message) < 600


def test_code_3_is_a_gate_s_in_any_case(containers, program):
    with pytest.raises(GateStopError, match="the container's gate refused: bad"):
        replace(containers, program=program("echo bad >&2; exit 3")).run("n", CONTAINER, [], writable=())


def test_who_ends_the_task_ends_its_container_first(containers, program, tmp_path):
    path = program(
        '[ "$1" = rm ] && { touch $0.removed; exit; }',
        "touch $0.started; while [ -e $0 ] && [ ! -e $0.removed ]; do sleep 0.02; done",
    )
    with in_a_process(replace(containers, program=path), "mine") as task:
        while not Path(f"{path}.started").exists():
            assert task.poll() is None, "it ended before its container began"
            time.sleep(0.01)
        task.send_signal(signal.SIGTERM)
        assert task.wait() == -signal.SIGTERM
    assert "rm --force mine" in (tmp_path / "asked").read_text()


def test_nobody_waits_for_a_watcher_that_has_ended(containers, program):
    """As Podman does: it leaves a process to whoever takes in orphans, and ends when that is gone."""
    path = program(
        "sh -c 'sleep 0.05 & echo $! >'$0.watcher",
        "while [ -e $0 ] && [ -e /proc/$(cat $0.watcher) ]; do sleep 0.02; done",
    )
    with in_a_process(replace(containers, program=path), "n") as task:
        assert task.wait() == 0


def test_containers_that_were_left_are_removed_by_the_folder_of_their_rehearsals(program, tmp_path):
    remove_left(program('[ "$1" = ps ] && echo 12ab 34cd', "exit 0"), Path("/r"))
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ["ps --all --quiet --filter label=slipway.rehearsal=/r", "rm --force 12ab 34cd"]


def test_a_target_without_a_program_has_no_containers_and_its_buckets_are_no_folders(tmp_path):
    config = small_workload(
        name="w", description="d", data={"source": "gs://b/a.csv"}, push={"destination": "/served"}
    ).model_dump_json()
    target = ImageRun(config=config, source=("gs://b", {}), image="i:1", root="gs://b/r")
    assert containers_of(target, rehearsals=tmp_path) is None
    assert containers_of(ImageModuleRun(pipeline="a:b", image="i:1"), rehearsals=tmp_path) is None
    made = replace(target, containers="/bin/podman", container_image="12ab", container_user=9)
    found = containers_of(made, rehearsals=tmp_path)
    assert (found.folders, found.is_online, found.user, found.image) == (("/served",), True, 9, "12ab")
    local = replace(target, containers="/bin/podman", root="/root")
    found = containers_of(local, rehearsals=tmp_path)
    assert (found.folders, found.is_online) == (("/root", "/served"), True), "its data are in a bucket"
    here = replace(local, source=("/data", {}), config=config.replace("gs://b/a.csv", "a.csv"))
    assert not containers_of(here, rehearsals=tmp_path).is_online
    assert (found.stores, stores_of(replace(here, source=("s3://b", {})))) == ((), ("s3",))
    assert stores_of(ImageModuleRun(pipeline="a:b", image="i:1")) == (), "which TFX cannot open"
    kept = replace(here, config=config.replace("gs://b/a.csv", "az://b/a.csv"), root="minio://b/r")
    found = containers_of(kept, rehearsals=tmp_path)
    assert (found.stores, found.is_online) == (("s3", "az"), True)


def test_a_daemon_that_hangs_is_no_longer_waited_for_after_a_limit():
    told = output(["sleep", "9"], limit_s=0.1)
    assert (told.returncode, told.stderr) == (124, "no answer within 0.1 s")
