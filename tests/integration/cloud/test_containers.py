"""The image, built on this machine from a base made here, and rehearsals with containers of it.

Seen only here: that the image holds all that tasks and Beam's workers import, and that tasks run as another
user on read-only files, with the memory and cores that the job gives them.
"""

import json
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from beam_cluster import ADDRESSES, FIRST, JOBS, SDK_WORKERS, SECOND, missing
from flink_cluster import BEAM, FlinkCluster
from installed import needed
from object_servers import google
from packaging.utils import canonicalize_name
from watched import run_watched

from slipway.components.errors import ComponentError
from slipway.pipeline.cloud.image_contents import IMAGE_ROOT
from slipway.pipeline.cloud.rehearsal.container_environment import from_outside
from slipway.pipeline.cloud.rehearsal.containers import Containers

PROGRAMS = ("buildah", "podman", "runc", "mmdebstrap")
NAME = "localhost/slipway:tested"
LOCK = "requirements-image.lock"
LARGEST = 2_500_000_000
"""Bytes that the image may take unpacked."""
CERTIFICATES = "/etc/ssl/certs"
CHROOT = "--isolation=chroot"
ONLINE = f"{CHROOT} --network=host --volume {CERTIFICATES}:{CERTIFICATES}:ro"

needed("kfp", reason="TFX brings kfp to Python 3.11 only")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.external,
    pytest.mark.skipif(
        os.getuid() != 0 or not all(map(shutil.which, PROGRAMS)),
        reason=f"an image is built and run by root, with {', '.join(PROGRAMS)}",
    ),
    pytest.mark.timeout(1800),  # to build the image, and thirteen imports of TensorFlow
]


@pytest.fixture(scope="module")
def make(project, storage):
    """Runs make with Buildah as the builder."""

    def call(*words):
        made = run_watched(
            ["make", *words, "BUILDER=buildah"], cwd=project, env={**os.environ, **storage}, timeout_s=900
        )
        assert made.returncode == 0, made.stdout[-3000:] + made.stderr[-3000:]

    return call


@pytest.fixture(scope="module")
def image(project, make):
    """The name of the image of this checkout."""
    cache = subprocess.run(
        [project / ".venv/bin/uv", "cache", "dir"], capture_output=True, text=True, check=True
    ).stdout.strip()
    # The packages that make setup has fetched, where uv looks for them as root, and what this machine trusts.
    there = Path(pwd.getpwuid(0).pw_dir, ".cache", "uv")
    options = f"{ONLINE} --volume {cache}:{there}"
    make("image-base", "BASE=localhost/base")
    make("image", f"IMAGE={NAME}", "BASE=localhost/base", "TARGET=pipeline", f"BUILD_OPTIONS={options}")
    return NAME


@pytest.fixture
def made_from(image, make):
    """Makes the image of a target that begins with the pipeline's, which is not built again."""

    def call(target, options):
        name = f"localhost/slipway:{target}"
        options = f"{options} --build-context pipeline=container-image://{image}"
        make("image", f"IMAGE={name}", "BASE=localhost/base", f"TARGET={target}", f"BUILD_OPTIONS={options}")
        return name

    return call


@pytest.fixture
def rehearse(project, storage):
    """Rehearses in containers, as `cloud_runner` calls; Podman's watchers listen on its owner's sockets."""

    def call(*words):
        command = [sys.executable, "cloud_runner.py", "rehearse", "--containers", *words]
        environment = {**os.environ, "CI": "true", **storage}
        finished = run_watched(command, cwd=project, env=environment, timeout_s=900)
        assert [each for each in finished.listeners if "/conmon " not in each.command] == []
        return finished

    return call


def podman(storage, *words):
    return subprocess.run(
        ["podman", *words], env={**os.environ, **storage}, capture_output=True, text=True, check=True
    ).stdout


def test_image_takes_no_more_than_it_may(image, storage):
    [size] = podman(storage, "image", "ls", "--format", "{{.Size}}", image).splitlines()
    [inspected] = json.loads(podman(storage, "image", "inspect", image))
    assert inspected["Size"] <= LARGEST, size


def test_packages_in_the_image_are_those_of_its_bill_of_materials(image, storage, project):
    # `make sbom` writes it from this file.
    locked = re.findall(r"^([\w.-]+)(?:\[.*\])?==([^ \\]+)", (project / LOCK).read_text(), re.MULTILINE)
    script = (
        "from importlib.metadata import distributions;"
        " print(*(f'{each.name}=={each.version}' for each in distributions()))"
    )
    printed = podman(storage, "run", "--rm", "--network", "none", image, "python", "-c", script)
    installed = [tuple(each.split("==")) for each in printed.split()]

    def named(packages):
        return {canonicalize_name(name): version for name, version in packages}

    there = named(installed)
    assert len(there) == len(installed), "none is there twice"
    assert there == named(locked)


def test_no_bytecode_of_the_image_depends_on_the_time_of_its_build_and_nothing_is_left(image, storage):
    # PEP 552: the second word of a file is 0 where it is compiled by the time of its source. What a builder
    # leaves in /tmp has another name each time.
    script = (
        "import pathlib; print(*(each for each in pathlib.Path('/opt').rglob('*.pyc')"
        " if each.open('rb').read(8)[4:] == bytes(4)), *pathlib.Path('/tmp').iterdir())"
    )
    assert podman(storage, "run", "--rm", "--network", "none", image, "python", "-c", script).split() == []


def test_rehearsal_in_containers_makes_what_the_local_run_made(image, storage, fewer, rehearse, output):
    finished = rehearse(*fewer, "--set", f"cloud.image={image}", "--output", str(output))
    assert finished.returncode == 0, finished.stderr
    [made] = (output / "rehearsal" / "runs").glob("*/run.json")
    record = json.loads(made.read_text())
    assert {node["state"] for node in record["nodes"]} == {"complete"}
    assert "Equal to the local run" in finished.stderr
    assert "Differs" not in finished.stderr
    pushed = Path(record["pushed"]["path"])
    assert (pushed / "saved_model.pb").stat().st_uid == 10001, "the tasks run as the image's user"
    assert podman(storage, "ps", "--all", "--quiet") == "", "no container is left"


def test_rehearsal_in_containers_with_artifacts_on_gs_makes_the_same(
    image, gs, fewer, rehearse, output, monkeypatch
):
    for name, value in gs.items():
        monkeypatch.setenv(name, value)
    words = ("--set", f"cloud.image={image}", "--root", "gs://bucket/pipelines")
    finished = rehearse(*fewer, *words, "--output", str(output))
    assert finished.returncode == 0, finished.stderr
    assert "Equal to the local run" in finished.stderr
    assert "Differs" not in finished.stderr


@pytest.fixture
def gs_and_cluster(project, image, storage, tmp_path):
    """A Cloud Storage, and a Flink cluster whose worker pools run in the image and share no disk with it."""
    if reason := missing(project, "flink"):
        pytest.skip(reason)
    account, shared = tmp_path / "account", tmp_path / "cluster"
    account.mkdir()
    shared.mkdir()
    with (
        FlinkCluster(project, shared, has_pools=False) as cluster,
        google(account, host=ADDRESSES[JOBS], on=partial(cluster.on, JOBS)) as variables,
    ):
        for host in (FIRST, SECOND):
            cluster.start_pool_in_container(
                host, image, folders=[account], variables=variables, podman=storage
            )
        yield variables, cluster


UPLOAD = """
import sys, urllib.request
url, file = sys.argv[1:]
with open(file, "rb") as data:
    urllib.request.urlopen(urllib.request.Request(url, data.read(), method="POST")).close()
"""


def test_beam_workers_in_the_image_make_of_what_is_on_gs_what_the_direct_runner_makes_though_one_is_lost(
    gs_and_cluster, image, taxi_csv, fewer, first_record, tmp_path
):
    from slipway.pipeline.cloud.rehearsal.output_comparison import compare_outputs

    gs, cluster = gs_and_cluster
    url = f"{gs['STORAGE_EMULATOR_HOST']}/upload/storage/v1/b/bucket/o?uploadType=media&name=trips/1.csv"
    subprocess.run(cluster.on(JOBS, sys.executable, "-c", UPLOAD, url, taxi_csv), check=True)
    settings = {
        "cloud.image": image,
        "data.source": "gs://bucket/trips/*.csv",
        "beam": json.dumps(BEAM),
        "evaluate.serving": "null",
    }
    words = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    output = ("--root", "gs://bucket/pipelines", "--output", tmp_path / "output")
    rehearsal = subprocess.Popen(
        cluster.on(JOBS, sys.executable, "cloud_runner.py", "rehearse", *fewer, *words, *output),
        env={**os.environ, "CI": "true", **gs},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    # Both have started what they need for the rows of Ingest: a worker, beside what it is forked from.
    cluster.wait_until(
        lambda: rehearsal.poll() is not None or len(cluster.pids(SDK_WORKERS)) == 4, "no workers"
    )
    cluster.kill_worker(SECOND)
    cluster.start_worker(SECOND)
    said, _ = rehearsal.communicate(timeout=900)
    assert rehearsal.returncode == 0, said
    ingest, *others = cluster.jobs()
    assert ingest.has_lost
    assert all(job.is_done for job in (ingest, *others))
    assert {host for job in others for host in job.hosts} == {FIRST, SECOND}
    [made] = (tmp_path / "output/rehearsal/runs").glob("*/run.json")
    theirs = {node["id"]: node["outputs"] for node in json.loads(made.read_text())["nodes"]}
    ours = {node.id: node.outputs for node in first_record.nodes}
    compared = [
        each
        for node in ("Ingest", "StatisticsGen", "Transform", "ModelGate")
        for each in compare_outputs(node, ours[node], theirs[node])
    ]
    assert {each.output for each in compared} >= {
        *("examples", "statistics", "transform_graph", "transformed_examples", "blessing")
    }
    assert [each for each in compared if each.differences or each.unread] == []


@pytest.fixture
def containers(image, storage, tmp_path, monkeypatch):
    """Containers of the image, whose commands may write into a folder of the test's."""
    for name, value in storage.items():
        monkeypatch.setenv(name, value)
    return Containers(
        program=shutil.which("podman"),
        image=image,
        user=10001,
        rehearsals=str(tmp_path),
        folders=(str(tmp_path / "artifacts"),),
        is_online=False,
    )


def run(containers, name, script, memory_gb=0.5):
    container = {"image": NAME, "resources": {"memoryLimit": memory_gb, "cpuLimit": 1.0}}
    folder = Path(containers.folders[0]) / name
    containers.run(name, container, ["sh", "-c", f"cd {folder}; {script}"], writable=[folder])
    return folder


def test_a_container_has_the_job_s_memory_and_cores_no_network_and_writes_only_where_it_may(containers):
    limits = "/sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max"
    shares = "/sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu/cpu.cfs_period_us /sys/fs/cgroup/cpu.max"
    told = f"cat {limits} >memory 2>&-; cat {shares} >cpu 2>&-; cat /proc/net/dev >net; id -u >user"
    script = f"{told}; touch /tmp/a; touch /a {IMAGE_ROOT}/a"
    with pytest.raises(ComponentError, match="Read-only file system"):
        run(containers, "all", script)
    folder = Path(containers.folders[0]) / "all"
    assert abs(int((folder / "memory").read_text()) - 500_000_000) < os.sysconf("SC_PAGE_SIZE")
    quota_us, period_us = map(int, (folder / "cpu").read_text().split())
    assert quota_us == period_us, "one core"
    assert (folder / "user").read_text().strip() == "10001"
    assert [line.split(":")[0].strip() for line in (folder / "net").read_text().splitlines()[2:]] == ["lo"]


def test_a_task_that_needs_a_network_has_one_of_its_own(containers, monkeypatch):
    for name in from_outside(os.environ):
        monkeypatch.delenv(name)
    with socket.create_server(("127.0.0.1", 0)) as here:
        reached = f"socket.create_connection(('127.0.0.1', {here.getsockname()[1]}), 5)"
        script = f'cat /proc/net/dev >net; python -c "import socket; {reached}" 2>said'
        with pytest.raises(ComponentError):
            run(replace(containers, is_online=True), "online", script)
    folder = Path(containers.folders[0]) / "online"
    assert "ConnectionRefusedError" in (folder / "said").read_text()
    names = [line.split(":")[0].strip() for line in (folder / "net").read_text().splitlines()[2:]]
    assert len(names) == 2, "loopback, and a way out"


def test_want_of_memory_is_reported(containers):
    with pytest.raises(
        ComponentError, match=r"which had 0\.05 GB, was killed, as happens when memory runs out"
    ):
        run(containers, "oom", "python -c 'bytearray(10**9)'", memory_gb=0.05)
    assert not Path("oom").exists(), "nor is anything left where it was started"


def test_a_task_that_is_told_to_end_leaves_no_container_and_the_next_attempt_runs(containers, storage):
    child = os.fork()
    if child == 0:
        try:
            run(containers, "task-1", "touch started; sleep 300")
        finally:
            os._exit(1)
    started = Path(containers.folders[0]) / "task-1" / "started"
    while not started.exists():
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "it runs"
    os.kill(child, signal.SIGTERM)
    os.waitpid(child, 0)
    assert podman(storage, "ps", "--all", "--quiet") == ""
    assert (run(containers, "task-2", "touch done") / "done").exists()


def test_beam_worker_is_the_same_image_with_the_launcher_of_beam_s(made_from, storage, tmp_path):
    # Beam's own image is in a registry only. A script stands for its launcher, which writes where it starts.
    (tmp_path / "boot").write_text(
        "#!/bin/sh\nset -e\ntouch pipeline_options.json\n"
        'echo "$(id -u) $RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT $(which python) $@"\n'
    )
    (tmp_path / "Dockerfile").write_text("FROM scratch\nCOPY --chmod=755 boot /opt/apache/beam/boot\n")
    subprocess.run(
        ["buildah", "build", CHROOT, "--quiet", "--tag", "localhost/beam", tmp_path],
        env={**os.environ, **storage},
        check=True,
        capture_output=True,
    )
    name = made_from("beam-worker", f"{CHROOT} --build-arg BEAM=localhost/beam")
    closed = ["run", "--rm", "--network", "none", "--read-only"]
    for user in ("0", "10001"):
        words = closed if user == "0" else [*closed, "--user", user]
        assert podman(storage, *words, name, "--id=1") == f"{user} 1 /opt/venv/bin/python --id=1\n"


def test_training_image_for_tpus_loads_libtpu_which_finds_none_here(made_from, storage):
    name = made_from("training-tpu", ONLINE)
    alone = ["--rm", "--network", "none", "--read-only", "--env", "JAX_PLATFORMS=tpu"]
    # It would ask the cloud's own server which machine this is.
    alone += ["--env", "TPU_SKIP_MDS_QUERY=1"]
    script = "import slipway.components.trainer.remote.worker, jax; jax.devices()"
    finished = subprocess.run(
        ["podman", "run", *alone, name, "python", "-c", script],
        env={**os.environ, **storage},
        check=False,
        capture_output=True,
        text=True,
    )
    assert "TPU initialization failed: No jellyfish device found" in finished.stderr


def test_image_of_other_code_is_refused_before_anything_runs(image, storage, rehearse, tmp_path):
    changed = tmp_path / "Dockerfile"
    changed.write_text(f"FROM {image}\nCOPY Dockerfile {IMAGE_ROOT}/workloads/new.py\n")
    subprocess.run(
        ["buildah", "build", CHROOT, "--quiet", "--tag", "localhost/slipway:other", tmp_path],
        env={**os.environ, **storage},
        check=True,
        capture_output=True,
    )
    finished = rehearse("--set", "cloud.image=localhost/slipway:other", "--output", str(tmp_path))
    assert finished.returncode == 2
    assert (
        "localhost/slipway:other: podman's image of that name does not hold this folder's code."
        in finished.stderr
    )
    assert not (tmp_path / "rehearsal" / "runs").exists()
