"""Publishing to a directory: whole or not at all, once, in turn."""

import errno
import itertools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from slipway.components.errors import ComponentError
from slipway.components.pusher import publish_to_folder as publishing
from slipway.components.pusher.manifest import read_manifest, sha256, verify
from slipway.components.pusher.publish_to_folder import publish

FILES = {
    "saved_model.pb": b"graph",
    "variables/variables.index": b"index",
    "variables/variables.data-00000-of-00001": b"weights" * 100,
}
# What a publisher does to the disk, beside writing into files that only it knows.
CHANGES = [(os, "fsync"), (os, "mkdir"), (os, "rename"), (Path, "rename"), (Path, "mkdir"), (Path, "open")]
KILLED = -signal.SIGKILL


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    (folder / "assets").mkdir(parents=True)
    (folder / "variables").mkdir()
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    return folder


@pytest.fixture
def base(tmp_path):
    return tmp_path / "serving" / "taxi"


def versions(base):
    """The states that a server would see, in order."""
    found = [path for path in base.iterdir() if path.name.isdigit()] if base.is_dir() else []
    return sorted(found, key=lambda path: int(path.name))


def partial(base):
    """The visible versions that do not hold what they say, with the reason."""
    return {path.name: problem for path in versions(base) if (problem := verify(path))}


def staged(base):
    return list(base.glob(".staging-*")) if base.is_dir() else []


def in_child(work):
    """Does the work in a forked child; returns its exit code, negative for a signal."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.fixture(scope="module")
def killed_at_line(project):
    """Publishes in a child that is killed before the given line of the publisher; returns its exit code."""
    program = [sys.executable, str(project / "tests/support/killed_publisher.py")]
    environment = {**os.environ, "PYTHONPATH": str(project)}
    with subprocess.Popen(
        program, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def call(number, model, base):
            process.stdin.write(json.dumps([number, str(model), str(base)]) + "\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        yield call
        process.stdin.close()


def fail_at(monkeypatch, number, code):
    """Makes the given change of the disk fail, counted over all kinds; returns a list, filled when it did."""
    done, failed = itertools.count(1), []

    def failing(real):
        def change(*arguments, **options):
            if next(done) == number:
                failed.append(real.__name__)
                raise OSError(code, os.strerror(code))
            return real(*arguments, **options)

        return change

    for owner, name in CHANGES:
        monkeypatch.setattr(owner, name, failing(getattr(owner, name)))
    return failed


def error_of(work):
    """The error that the work ends with; None where it ends well."""
    try:
        work()
    except ComponentError as error:
        return error
    return None


def test_version_holds_the_model_and_a_manifest(model, base, monkeypatch):
    monkeypatch.setattr(
        "slipway.components.pusher.versions.time", SimpleNamespace(time=lambda: 1_764_000_000.9)
    )
    published = publish(model, base=base, provenance={"workload": "taxi"})
    assert published.was_there is False
    assert published.version == 1_764_000_000
    assert read_manifest(published.path).provenance["workload"] == "taxi"
    assert published.path == base / str(published.version)
    assert {name: (published.path / name).read_bytes() for name in FILES} == FILES
    assert (published.path / "assets").is_dir()
    assert verify(published.path) == ""
    manifest = json.loads((published.path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["files"]["saved_model.pb"] == {
        "sha256": "eef93e1d14482804277fca0172464032d1a4fdbcc338524059fa1e861454ad4d",
        "bytes": 5,
    }
    assert versions(base) == [published.path]
    assert not staged(base)


def test_same_model_is_found_and_nothing_is_written(model, base):
    first = publish(model, base=base)
    second = publish(model, base=base)
    assert (second.version, second.path, second.was_there) == (first.version, first.path, True)
    assert versions(base) == [first.path]


def test_published_version_can_be_published_again_elsewhere(model, base, tmp_path):
    first = publish(model, base=base)
    again = publish(first.path, base=tmp_path / "other")
    assert verify(again.path) == ""
    assert (again.path / "manifest.json").read_bytes() == (first.path / "manifest.json").read_bytes()


def test_each_changed_model_gets_a_larger_version_also_within_a_second(model, base):
    found = []
    for number in range(5):
        (model / "saved_model.pb").write_bytes(b"graph%d" % number)
        found.append(publish(model, base=base).version)
    assert found == sorted(set(found))
    assert not partial(base)


def test_model_that_came_back_is_pushed_again_because_another_is_newest(model, base):
    publish(model, base=base)
    (model / "saved_model.pb").write_bytes(b"other")
    publish(model, base=base)
    (model / "saved_model.pb").write_bytes(FILES["saved_model.pb"])
    assert not publish(model, base=base).was_there
    assert len(versions(base)) == 3


def test_clock_that_went_back_makes_no_smaller_version(model, base, monkeypatch):
    first = publish(model, base=base)
    (model / "saved_model.pb").write_bytes(b"other")
    monkeypatch.setattr("slipway.components.pusher.versions.time", SimpleNamespace(time=lambda: 1000.0))
    assert publish(model, base=base).version == first.version + 1


@pytest.mark.parametrize("again", [False, True], ids=["first push", "push after another"])
def test_publisher_killed_before_any_line_leaves_no_partial_version(model, tmp_path, killed_at_line, again):
    outcomes = []
    for number in itertools.count(1):
        base = tmp_path / str(number) / "taxi"
        if again:
            publish(model, base=base)
            (model / "saved_model.pb").write_bytes(b"model %06d" % number)
        before = versions(base)
        code = killed_at_line(number, model, base)
        assert code in (0, KILLED), number
        assert not partial(base), number
        signed = [(path / "model.sig").is_file() for path in versions(base) if path not in before]
        assert all(signed), number
        if code == 0:
            break
        published = publish(model, base=base)
        assert versions(base) == [*before, published.path], number
        assert not staged(base), number
        assert not partial(base), number
        outcomes.append(published.was_there)
    # Killed early the version was missing, killed late it was there: both kinds of death were seen.
    assert outcomes.count(False) > 50
    assert outcomes.count(True) >= 3
    assert outcomes == sorted(outcomes)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_any_change_of_the_disk_that_fails_is_reported_and_leaves_no_partial_version(
    model, tmp_path, monkeypatch, code
):
    kinds = set()
    for number in itertools.count(1):
        base = tmp_path / str(number) / "taxi"
        with monkeypatch.context() as patched:
            failed = fail_at(patched, number, code)
            told = error_of(lambda base=base: publish(model, base=base))
        if not failed:
            assert told is None
            break
        assert str(base) in told.message
        assert os.strerror(code) in told.message
        assert told.hint
        kinds.update(failed)
        assert not partial(base), failed
        assert not staged(base), failed
        published = publish(model, base=base)
        assert versions(base) == [published.path], failed
        assert not partial(base), failed
    assert kinds == {"fsync", "mkdir", "rename", "open"}


def test_file_that_cannot_be_written_to_its_end_leaves_nothing(model, base):
    (model / "variables/variables.data-00000-of-00001").write_bytes(bytes(2**20))

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**16, 2**16))
        with pytest.raises(ComponentError, match="File too large"):
            publish(model, base=base)

    assert in_child(limited) == 0
    assert not versions(base)
    assert not staged(base)
    assert publish(model, base=base).path.is_dir()


RACER = """
import sys
from pathlib import Path
from types import SimpleNamespace
from slipway.components.pusher.publish_to_folder import publish
sys.stdin.readline()
published = publish(Path(sys.argv[1]), base=Path(sys.argv[2]))
print(published.version, int(published.was_there))
"""


def race(project, base, *models):
    """Publishes from processes that start together; returns (version, was there) of each."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, str(model), str(base)],
            cwd=project,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for model in models
    ]
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    answers = [racer.communicate()[0].split() for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * len(racers)
    return [(int(version), there == "1") for version, there in answers]


def test_publishers_of_one_model_agree_on_one_version(model, base, project):
    for number in range(10):
        (model / "saved_model.pb").write_bytes(b"model %d" % number)
        before = len(versions(base))
        (one, there), (other, there_too) = race(project, base, model, model)
        assert one == other
        assert {there, there_too} == {False, True}
        assert len(versions(base)) == before + 1
    assert not partial(base)


def test_publishers_of_two_models_both_succeed_with_a_version_each(model, base, project, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    for number in range(10):
        (model / "saved_model.pb").write_bytes(b"model %d" % number)
        (other / "saved_model.pb").write_bytes(b"other %d" % number)
        (one, _), (two, _) = race(project, base, model, other)
        assert one != two
        assert (base / str(one) / "saved_model.pb").read_bytes() == b"model %d" % number
        assert (base / str(two) / "saved_model.pb").read_bytes() == b"other %d" % number
    assert len(versions(base)) == 20
    assert not partial(base)


def test_reader_that_polls_never_sees_a_partial_version(model, base):
    stop, seen = threading.Event(), {}

    def read():
        while not stop.is_set():
            seen.update(partial(base))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for number in range(50):
            (model / "saved_model.pb").write_bytes(b"model %d" % number)
            publish(model, base=base)
    finally:
        stop.set()
        reader.join()
    assert seen == {}
    assert len(versions(base)) == 50


def test_publisher_that_holds_the_base_too_long_is_told_of(model, base, monkeypatch):
    monkeypatch.setattr(publishing, "LOCK_WAIT_S", 0.05)
    base.mkdir(parents=True)
    with publishing._turn(base), pytest.raises(ComponentError) as raised:
        publish(model, base=base)
    assert str(raised.value) == (
        f"{base} is held by another publisher (waited 0 s).\nhint: end it; `fuser {base / '.lock'}` names it"
    )


@pytest.mark.parametrize(
    ("code", "remedy"),
    [
        (errno.ENOSPC, "make room there"),
        (errno.EDQUOT, "make room in the quota"),
        (errno.EACCES, "make it readable and writable for this user, or choose another push.destination"),
        (errno.EPERM, "make it readable and writable for this user, or choose another push.destination"),
        (errno.EROFS, "mount it writable, or choose another push.destination"),
        (errno.ENOTDIR, "choose another push.destination"),
        (errno.EEXIST, "choose another push.destination"),
        (errno.EIO, "check the disk"),
    ],
)
def test_error_of_the_system_is_reported_with_the_place_the_cause_and_the_remedy(base, code, remedy):
    def told(*where):
        with pytest.raises(ComponentError) as error, publishing._errors_named(base, "It cannot be done"):
            raise OSError(code, os.strerror(code), *where)
        return str(error.value)

    cause = f"{os.strerror(code)}.\nhint: {remedy}, then resume the run"
    assert told("/other") == f"It cannot be done (/other): {cause}"
    assert told(str(base)) == told() == f"It cannot be done: {cause}"


def test_error_without_a_number_is_reported_as_it_is(base):
    with pytest.raises(ComponentError) as error, publishing._errors_named(base, "It cannot be done"):
        raise OSError("odd")
    assert str(error.value) == "It cannot be done: odd.\nhint: check the disk, then resume the run"


def test_version_that_cannot_be_removed_is_not_told_as_a_model_that_cannot_be_published(base):
    with pytest.raises(ComponentError, match=f"^Version 7 cannot be removed from {base}"):
        publishing.remove_version(base, 7)


@pytest.mark.parametrize("name", [*FILES, "manifest.json"])
def test_flipped_byte_in_the_newest_version_is_noticed_and_the_model_pushed_again(model, base, name):
    first = publish(model, base=base)
    damaged = first.path / name
    content = damaged.read_bytes()
    for position in range(0, len(content), max(1, len(content) // 7)):
        flipped = bytearray(content)
        flipped[position] ^= 1
        damaged.write_bytes(flipped)
        assert verify(first.path) != "", position
    second = publish(model, base=base)
    assert second.version > first.version
    assert not second.was_there
    assert list(partial(base)) == [first.path.name]


@pytest.mark.parametrize("change", ["cut", "gone", "more", "link"])
def test_version_with_a_cut_missing_or_strange_file_does_not_count(model, base, change, caplog):
    first = publish(model, base=base)
    weights = first.path / "variables/variables.data-00000-of-00001"
    if change == "cut":
        weights.write_bytes(weights.read_bytes()[:-1])
    elif change == "more":
        (first.path / "strange").touch()
    else:
        weights.unlink()
        if change == "link":
            weights.symlink_to(model / "variables" / weights.name)
    problem = verify(first.path)
    assert problem != ""
    assert not publish(model, base=base).was_there
    assert caplog.messages == [f"{first.path} is damaged, so the model is pushed again: {problem}."]


def test_version_made_by_hand_is_left_alone_and_superseded(model, base):
    by_hand = base / "99999999999"
    by_hand.mkdir(parents=True)
    (by_hand / "saved_model.pb").write_bytes(FILES["saved_model.pb"])
    assert publish(model, base=base).version == 100000000000
    assert [path.name for path in by_hand.iterdir()] == ["saved_model.pb"]


def test_names_that_are_no_versions_are_passed_over(model, base, monkeypatch):
    monkeypatch.setattr(
        "slipway.components.pusher.versions.time", SimpleNamespace(time=lambda: 1_764_000_000.9)
    )
    for name in ("tmp", "v99999999999", "²", "9" * 40, "-5"):
        (base / name).mkdir(parents=True)
    assert publish(model, base=base).version == 1_764_000_000


def test_largest_version_is_the_end(model, base):
    (base / str(2**63 - 1)).mkdir(parents=True)
    with pytest.raises(ComponentError, match="largest possible version"):
        publish(model, base=base)


def test_newest_version_that_links_out_of_the_base_is_refused(model, base, tmp_path):
    base.mkdir(parents=True)
    (base / "99999999999").symlink_to(tmp_path)
    with pytest.raises(ComponentError) as error:
        publish(model, base=base)
    link = base / "99999999999"
    assert str(error.value) == (
        f"{link} is a link out of {base}, to {tmp_path}; its content cannot be verified.\n"
        f"hint: remove the link: rm {link}"
    )
    assert not staged(base)


@pytest.mark.parametrize("below", ["", "below"])
def test_file_in_the_place_of_the_base_is_refused(model, tmp_path, below):
    taken = tmp_path / "taken"
    taken.write_text("mine", encoding="utf-8")
    with pytest.raises(ComponentError, match=r"cannot be published to .*taken") as raised:
        publish(model, base=taken / below)
    assert "push.destination" in raised.value.hint
    assert taken.read_text(encoding="utf-8") == "mine"


def test_base_that_cannot_be_written_is_refused(model):
    def as_nobody():
        if os.geteuid() == 0:  # may write everywhere
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        with pytest.raises(ComponentError, match="Permission denied") as raised:
            publish(place / "model", base=place / "base")
        assert "push.destination" in raised.value.hint

    # Not below tmp_path, which is closed to others.
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        shutil.copytree(model, place / "model")
        (place / "base").mkdir(mode=0o555)
        assert in_child(as_nobody) == 0
        assert list((place / "base").iterdir()) == []
        (place / "base").chmod(0o755)


@pytest.mark.parametrize("name", ["assets/vocabulary", "variables/link"])
def test_link_in_the_model_is_refused_and_nothing_is_read_through_it(model, base, tmp_path, name):
    secret = tmp_path / "secret"
    secret.write_text("secret", encoding="utf-8")
    (model / name).symlink_to(secret)
    with pytest.raises(ComponentError, match=r"is a link or a special file"):
        publish(model, base=base)
    assert not base.exists()


def test_pipe_in_the_model_is_refused_instead_of_waited_for(model, base):
    os.mkfifo(model / "pipe")
    with pytest.raises(ComponentError, match=r"is a link or a special file"):
        publish(model, base=base)


@pytest.mark.parametrize("there", [True, False])
def test_folder_without_a_saved_model_is_refused(tmp_path, base, there):
    folder = tmp_path / "model"
    if there:
        folder.mkdir()
    with pytest.raises(ComponentError, match=str(folder)):
        publish(folder, base=base)
    assert not versions(base)


def test_leftover_of_any_kind_is_removed_without_following_links(model, base, tmp_path, caplog):
    caplog.set_level("INFO")
    (base / ".staging-1" / "variables").mkdir(parents=True)
    (base / ".staging-2").touch()
    (base / ".staging-3").symlink_to(model)
    publish(model, base=base)
    assert not staged(base)
    assert (model / "saved_model.pb").is_file()
    assert sorted(caplog.messages) == [f"Removing {base / f'.staging-{number}'}." for number in (1, 2, 3)]


def test_file_that_became_a_link_after_the_look_is_not_read(model, tmp_path):
    (tmp_path / "secret").write_text("secret", encoding="utf-8")
    (model / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(OSError, match="symbolic links"):
        sha256(model / "link")
