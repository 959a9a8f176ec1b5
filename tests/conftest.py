"""Fixtures for all tests."""

import sys

# What pytest makes of the files of tests is kept also where PYTHONDONTWRITEBYTECODE is set: half the seconds
# that each worker takes to collect them, and two for Hypothesis, which it rewrites too. For this process
# alone: what it starts keeps to the variable. First of all, because it holds for imports from here on.
sys.dont_write_bytecode = False

# ruff: noqa: E402
import gc
import importlib.util
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from called import called, forked_servers
from copied_run import copy_run
from hub_double import Hub, running_hub
from hypothesis import settings
from made_once import Shared
from watchdog import Watchdog
from watched import Finished, run_watched
from xdist.workermanage import NodeManager

from slipway.components.large_imports import large_imports
from slipway.pipeline.engine.processes.warm import Warm
from slipway.pipeline.runs.history import History

if TYPE_CHECKING:
    from slipway.pipeline.runs.record import RunRecord

# Nothing that collecting the tests makes is garbage: to look for some took half of each worker's seconds.
gc.disable()

# The same examples in every CI run; at a desk, new ones each time. No deadline: a machine may be busy.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("desk", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "desk")

# A process that a test starts ends with it: a run at a test's terminal leaves no warm one.
os.environ["SLIPWAY_WARM_MINUTES"] = "0"

# Keras 3, as in every process of a run; importing tensorflow_transform would choose Keras 2 for all tests.
os.environ.setdefault("TF_USE_LEGACY_KERAS", "0")

# To save what coverage has counted took a worker 9 s. After 10 xdist kills it without a word, and all that it
# has run counts as not run.
NodeManager.EXIT_TIMEOUT = 120

PROJECT = Path(__file__).resolve().parent.parent

FEWER = ("--set", "train.epochs=3")
# Beside the output folder of the run that these arguments make: a copy that nobody adds to.
UNTOUCHED = "untouched"
# The files that take longest begin first, so that no worker is still busy with one when the others are done.
# All three start from the run that these arguments make. In `make test` that is test_taxi.py alone; among the
# external ones, test_containers.py has an image to build before it needs the run.
FIRST = ("test_taxi.py", "test_containers.py", "test_taxi_in_airflow.py")
# Then those that take more than two minutes, in this order; the last three start from that run as well.
LONG = (
    "preflight/test_compile_step.py",
    "transform/test_executor.py",
    "trainer/test_devices.py",
    "e2e/test_beam_engines.py",
    "cloud/test_rehearse.py",
    "e2e/test_taxi_kills.py",
)
# These start from it as well: later, so that they find it made. The many short unit tests come last.
LATER = (
    "test_damaged_slice.py",
    "test_stock_nodes.py",
    "test_taxi_in_mlflow.py",
    "test_taxi_in_notebook.py",
    "test_trainer_export.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options to find tests that depend on another test."""
    parser.addoption("--reversed", action="store_true", help="run the last test first")
    parser.addoption("--twice", action="store_true", help="run all tests, and then again in the same process")


def pytest_configure(config: pytest.Config) -> None:
    """A test that hangs is ended, wherever it does; TensorFlow and TFX are imported as in a run.

    Without scikit-learn, IPython and the like: 3.5 s of CPU in each worker instead of 5.
    """
    config.pluginmanager.register(Watchdog())
    with large_imports():
        pass  # what it puts off, it puts off from now on


# Whoever asks for one of these stands on a foreign system, and cannot forget to say so.
FOREIGN = {"jax_python", "tpu_python"}

UNIT = len(LONG) + 3  # the last of all places


def _place(item: pytest.Item) -> int:
    path = item.path.as_posix()
    if "/tests/unit/" in path:
        return UNIT
    if item.path.name in FIRST:
        return 0
    if item.path.name in LATER:
        return UNIT - 1
    return next((place for place, long in enumerate(LONG, 1) if path.endswith(f"/{long}")), UNIT - 2)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Marks what needs another Python environment as external, before `-m` chooses, and orders.

    What pyproject.toml ignores is ignored too where a test's own filter lets warnings of imports pass: of all
    marks, the session's count most.
    """
    ignored = (each for each in config.getini("filterwarnings") if each.startswith("ignore"))
    session.add_marker(pytest.mark.filterwarnings(*ignored))
    for item in items:
        if FOREIGN.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.external)
        # `make test-external` does not read that folder.
        if _place(item) == UNIT and item.get_closest_marker("external"):
            raise pytest.UsageError(f"{item.nodeid} is external: move it out of tests/unit")
    items.sort(key=_place)
    if config.getoption("reversed"):
        items.reverse()
    yield
    if config.getoption("twice"):  # only now: -m has chosen
        items += [_again(item) for item in items]


def _again(item: pytest.Item) -> pytest.Item:
    """Return a test under another name: of two with one name, xdist runs the first alone."""
    assert isinstance(item, pytest.Function)
    name, original = (f"{each} (again)" for each in (item.name, item.originalname))
    return pytest.Function.from_parent(
        item.parent,
        name=name,
        originalname=original,
        callobj=item.obj,
        callspec=getattr(item, "callspec", None),
        fixtureinfo=item._fixtureinfo,
    )


def pytest_collection_finish() -> None:
    """Exempt all existing objects from collection: see `gc.disable` above.

    What tests import stays as well, and is gone through by each look for garbage: it is looked for seldom.
    """
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="session")
def project() -> Path:
    """The project's folder."""
    return PROJECT


@pytest.fixture(scope="session", autouse=True)
def _temporary_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A folder for the temporary files of this worker and of all that it starts, removed with it.

    TensorFlow writes the Python of each function that it traces there. It forgets the file in a process that
    is killed or leaves by os._exit, and what Python compiled of it in any. A run has its own folder; code of
    nodes that tests call themselves, or fork from the warm process, has none. A short name, for sockets.
    """
    tmp_path_factory.getbasetemp()  # which pytest keeps lies where it always does
    with (
        tempfile.TemporaryDirectory(prefix="tests-", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        Path(folder).chmod(0o1777)  # as /tmp: some tests, and database servers, go there as another user
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", None)
        yield


@pytest.fixture(scope="session")
def local_runner() -> Callable[..., Finished]:
    """Runs `python local_runner.py ARGS...` as a user does, and waits for it; nobody else may reach it."""

    def call(*args: str, cwd: Path = PROJECT, timeout_s: float = 300.0, **environment: str) -> Finished:
        finished = run_watched(
            [sys.executable, str(PROJECT / "local_runner.py"), *args],
            cwd=cwd,
            env={**os.environ, **environment},
            timeout_s=timeout_s,
        )
        # Engines that are let listen are programs of their own; what is ours is not let.
        assert [each for each in finished.listeners if not each.is_private and "python" in each.command] == []
        if not environment.get("SLIPWAY_OPEN_PORTS"):
            assert [each for each in finished.listeners if not each.is_private] == []
        return finished

    return call


@pytest.fixture(scope="session")
def warm() -> Iterator[Warm]:
    """A process that has imported TFX, TensorFlow and Keras: one for all tests of a worker."""
    with Warm() as process:
        yield process


@pytest.fixture(scope="session")
def warm_runner(request: pytest.FixtureRequest) -> Callable[..., Finished]:
    """As `local_runner`, but called in this process, and its runs are forked from the warm one.

    For all that is not about the start of the process itself; each run saves the import of TFX.
    """

    def call(*args: str, cwd: Path = PROJECT, **environment: str) -> Finished:
        with forked_servers(lambda: request.getfixturevalue("warm")):
            return called("local_runner", *args, cwd=cwd, environment=environment)

    return call


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A Hugging Face Hub on loopback, which the environment names; nobody waits before trying again."""
    from slipway.components.ingest import hub_client

    with running_hub() as found:
        monkeypatch.setenv("HF_ENDPOINT", found.address)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.setattr(hub_client, "_FIRST_WAIT_S", 0.0)
        hub_client._session_of.cache_clear()
        yield found
        hub_client._session().close()
        hub_client._session_of.cache_clear()


@pytest.fixture(scope="session")
def taxi_csv() -> Path:
    """The raw taxi trips, as TFX brings them."""
    [folder] = importlib.util.find_spec("tfx").submodule_search_locations
    return Path(folder, "examples/chicago_taxi_pipeline/data/simple/data.csv")


@pytest.fixture(scope="session")
def fewer() -> tuple[str, ...]:
    """Arguments for `run` that make it shorter."""
    return FEWER


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """The folder of that run, the same for all workers."""
    return Shared(tmp_path_factory, "taxi")


@pytest.fixture(scope="session")
def first_output(shared: Shared) -> Path:
    """The output folder of that run. Only test_taxi.py adds to it; others copy it, see `output`."""
    return shared.folder / "output"


@pytest.fixture(scope="session")
def temporary(shared: Shared) -> Path:
    """The system's folder for temporary files, as that run finds it."""
    return shared.folder / "temporary"


@pytest.fixture(scope="session")
def first_run(
    local_runner: Callable[..., Finished], shared: Shared, first_output: Path, temporary: Path
) -> Finished:
    """The run, finished; made by the first worker that needs it."""

    def make(folder: Path) -> Finished:
        temporary.mkdir()
        finished = local_runner("run", *FEWER, "--output", str(first_output), TMPDIR=str(temporary))
        assert finished.returncode == 0, finished.stderr
        assert finished.listeners == [], "a run needs no port, not even on loopback"
        copy_run(first_output, folder / UNTOUCHED)
        return finished

    made: Finished = shared.made(make)
    return made


@pytest.fixture(scope="session")
def first_record(first_run: Finished, first_output: Path) -> "RunRecord":
    """The record of that run, whatever was added since."""
    *_, first = History(first_output).runs()
    return first


@pytest.fixture(scope="module")
def output(first_run: Finished, shared: Shared, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The module's own copy of the output folder of that run, as the run left it; anything may be added."""
    return copy_run(shared.folder / UNTOUCHED, tmp_path_factory.mktemp("taxi") / "output")


@pytest.fixture(scope="session")
def jax_python(project: Path) -> str:
    """The Python of the second environment."""
    python = project / ".venv-jax" / "bin" / "python"
    if not python.exists():
        if os.environ.get("CI"):
            pytest.fail("there is no .venv-jax; .ci/run makes it")
        pytest.skip("there is no .venv-jax: `make jax` makes it")
    return str(python)


# The counts of two rows, as the ModelGate keeps them.
_TWO_ANSWERS = {
    "kind": "binary",
    "groups": [[0.25, 1, 0.0, 0.0, 0.25], [0.75, 1, 1.0, 1.0, 0.75]],
    "rows": 2,
    "not_finite": 0,
}


def _artifacts_full_of(text: str, folder: Path) -> dict[str, list[dict[str, object]]]:
    """Results of all kinds that a page reads, with the text wherever a user's may stand."""
    from tensorflow_metadata.proto.v0 import statistics_pb2

    message = statistics_pb2.FeatureNameStatistics(name=text, type="STRING")
    stats = message.string_stats
    stats.common_stats.num_non_missing = stats.common_stats.tot_num_values = 2
    stats.rank_histogram.buckets.add(label=text, sample_count=2)
    whole = statistics_pb2.DatasetFeatureStatistics(num_examples=2, features=[message])
    listed = statistics_pb2.DatasetFeatureStatisticsList(datasets=[whole])
    finding = {
        "feature": text,
        "splits": [text],
        "what": text,
        "limit": 1,
        "remedy": text,
        "stops": True,
        "rows": [{"file": text, "line": 1, "row": 0, "value": text}],
    }
    check = {"metric": text, "slice": text, "required": text, "got": 0.5, "passed": False, "note": text}
    files = {
        "verdict.json": {
            "passed": True,
            "message": text,
            "findings": [finding],
            "checks": [check],
            "warnings": [text],
            "slices": {text: {text: 0.5}},
            "reference_models": {text: {text: 0.5}},
            "answers": dict.fromkeys(("candidate", "baseline"), _TWO_ANSWERS),
        },
        "summary.json": {
            "rows_in": 2,
            "rows_out": {text: 1},
            "rejected": {text: 1},
            "first_rejected": [text],
        },
        "report.json": {"crash": text},
        "preflight.json": {
            "made_at": text,
            "estimates": text,
            "prices_of": text,
            "slices": [
                {
                    "slice": {"name": text},
                    "batch_size": 1,
                    "can_train": True,
                    "step": {"peak_bytes": 1, "available_bytes": 2},
                    "estimate": {"bound": text, "step_s": 0.1, "cost_usd": 1.5},
                    "findings": [{"severity": text, "message": text, "remedy": text}],
                }
            ],
            "recommended": text,
            "keys": {text: text},
            "rent": {"command": text},
        },
        "result.json": {"verdict": text, "devices": text, "tuned": {}},
        "history.json": {"epochs": [{"epoch": 1, text: 0.5}, {"epoch": 2, text: 0.6}]},
        "job.json": {"model": text, "hyperparameters": {text: text}},
        "tuner_results.json": [{text: text}],
    }
    for split in ("Split-train", "reference/Split-train"):
        (folder / split).mkdir(parents=True)
        (folder / split / "FeatureStats.pb").write_bytes(listed.SerializeToString())
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    types = ("ExampleStatistics", "schemas.DataVerdict", "schemas.Quarantine", "schemas.ServingReport")
    types += ("ModelBlessing", "ModelRun", "TunerResults", "schemas.PreflightReport")
    properties = {"ModelBlessing": {"blessed": 1}}
    return {
        kind: [{"uri": str(folder), "type": kind, "properties": properties.get(kind, {})}] for kind in types
    }


@pytest.fixture
def report_run(tmp_path: Path) -> Callable[..., "RunRecord"]:
    """A run in whose every text stands what is given, failed at its last node."""

    from slipway.pipeline.fingerprint.fingerprint import Fingerprint
    from slipway.pipeline.runs.history import History
    from slipway.pipeline.runs.record import NodeRecord
    from slipway.pipeline.runs.run_target import RecordedRequest, WorkloadRun

    def make(text: str = "plain", state: str = "failed") -> "RunRecord":
        history = History(tmp_path)
        config = json.dumps({"transform": {"classes": [text, text]}})
        target = RecordedRequest(workload=text, output=tmp_path, target=WorkloadRun(config=config))
        record = history.new_run(text, target)
        record.nodes = [
            NodeRecord("first" + text, type=text, state="complete", why=text, started_s=0.0, wall_s=2.0),
            NodeRecord(
                "last" + text,
                type=text,
                state="failed" if state == "failed" else "complete",
                why=text,
                started_s=2.0,
                wall_s=1.0,
                upstream=["first" + text],
                error={"message": text, "hint": text, "where": text} if state == "failed" else None,
                outputs={text: [{"uri": text, "type": text, "properties": {text: text}}]},
                log="logs/last.log",
            ),
        ]
        record.nodes[0].outputs = _artifacts_full_of(text, tmp_path / str(len(list(tmp_path.iterdir()))))
        record.state, record.metrics, record.overrides = state, {text: 0.5}, {"bless": text}
        (history.folder(record.run_id) / "logs" / "last.log").write_text(text * 3, encoding="utf-8")
        history.save_fingerprints(record.run_id, {"last" + text: Fingerprint({f"param:{text}": text})})
        history.save(record)
        return record

    return make


@pytest.fixture
def key_files(tmp_path: Path) -> Callable[..., tuple[Path, Path]]:
    """Makes the files of a key that signs models, private and public; the private one for its owner alone."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    def make(name: str = "signing", *, key: Any = None, password: str = "") -> tuple[Path, Path]:
        key = key or ec.generate_private_key(ec.SECP256R1())
        pem, form = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        locked = serialization.BestAvailableEncryption(password.encode()) if password else None
        private, public = tmp_path / f"{name}.pem", tmp_path / f"{name}.pub"
        private.touch(0o600)
        private.write_bytes(
            key.private_bytes(pem, serialization.PrivateFormat.PKCS8, locked or serialization.NoEncryption())
        )
        public.write_bytes(key.public_key().public_bytes(pem, form))
        return private, public

    return make
