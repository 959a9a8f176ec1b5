"""gs:// as a destination, against a strict store: whole or not at all, whatever fails and whoever dies."""

import contextlib
import itertools
import json
import os
import random
import signal
import threading
import time
from datetime import timedelta
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace

import loopback
import pytest
from small_workload import small_workload

from slipway.components import store_waits
from slipway.components.errors import ComponentError
from slipway.components.pusher import google_folder, model_lock
from slipway.components.pusher import publish_to_bucket as publishing
from slipway.components.pusher.artifact_folder import on_this_machine
from slipway.components.pusher.google_folder import Folder
from slipway.components.pusher.manifest import NO_MANIFEST
from slipway.components.pusher.publish_to_bucket import complete_versions, publish_to_bucket, verify_in_bucket
from slipway.components.pusher.retention import thin_out
from slipway.components.pusher.signature import Trust
from slipway.components.pusher.signing_keys import SigningSettings, read_signing_key, read_verify_key
from slipway.components.pusher.stored_folder import EMPTY_CRC32C, TakenError, crc32c_of
from slipway.components.pusher.version_files import Extras
from slipway.components.pusher.version_store import UntrustedError, version_store_at
from slipway.pipeline.commands.verify import Verified, verify
from slipway.pipeline.commands.versions import rollback

pytestmark = [
    pytest.mark.slow,
    # The client leaves a connection that broke to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


def partial(base):
    """The visible versions that do not hold what they say, with the reason."""
    with contextlib.closing(Folder(base)) as folder:
        found = {version: verify_in_bucket(folder, version) for version in complete_versions(folder.list())}
    return {version: problem for version, problem in found.items() if problem}


def leftovers(seen):
    """Objects of versions that are not complete, and staged files, without the marks that stay for ever."""
    complete = {str(version) for version in complete_versions(seen)}
    parts = {name: name.split("/")[0] for name in seen}
    return [
        name
        for name, stored in seen.items()
        if parts[name] != ".claims" and parts[name] not in complete and stored.size_bytes
    ]


def in_child(work):
    """Does the work in a forked child; returns its process id."""
    child = os.fork()
    if not child:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return child


def error_of(work):
    """The error that the work ends with; None where it ends well."""
    try:
        work()
    except ComponentError as error:
        return error
    return None


def test_version_is_complete_and_its_manifest_holds_for_every_byte(model, base, contents):
    published = publish_to_bucket(model, base=base, provenance={"workload": "taxi"})
    assert published.address == f"{base}/{published.version}"
    names = {name.removeprefix(f"{published.version}/") for name in contents() if name[0] != "."}
    assert names == {
        "saved_model.pb",
        "variables/variables.index",
        "variables/variables.data-00000-of-00001",
        "manifest.json",
        "MODEL_CARD.md",
    }
    assert partial(base) == {}
    assert leftovers(contents()) == []


def test_signed_version_is_verified_in_the_bucket_and_where_it_is_used(model, base, key_files, cloud):
    key = read_signing_key(SigningSettings(str(key_files()[0])))
    trust = Trust(read_verify_key(str(key_files("signed_by_others")[1])), "taxi")
    unsigned = publish_to_bucket(model, base=base, provenance={"workload": "taxi"})
    signed = publish_to_bucket(model, base=base, provenance={"workload": "taxi"}, extras=Extras(key))
    assert signed.version > unsigned.version
    again = publish_to_bucket(model, base=base, provenance={"workload": "taxi"}, extras=Extras(key))
    assert (again.version, again.was_there) == (signed.version, True)
    store = version_store_at(base, Trust(key.public, "taxi"))
    assert store.problem(unsigned.version) == "it is not signed: it has no model.sig"
    assert store.problem(signed.version) == version_store_at(base).problem(signed.version) == ""
    assert store.manifest(signed.version).provenance["workload"] == "taxi"
    assert store.manifest(unsigned.version) is None
    with store.fetched(signed.version) as folder:
        assert (folder / "saved_model.pb").read_bytes() == (model / "saved_model.pb").read_bytes()
    with pytest.raises(UntrustedError, match="it is signed with the key"):
        version_store_at(base, trust).fetched(signed.version).__enter__()


def test_nothing_is_downloaded_of_a_version_that_is_not_what_was_signed(
    model, base, key_files, cloud, monkeypatch
):
    key = read_signing_key(SigningSettings(str(key_files()[0])))
    version = publish_to_bucket(model, base=base, extras=Extras(key)).version
    folder = Folder(base)
    monkeypatch.setattr(Folder, "fetch", lambda *_: pytest.fail("downloaded"))
    folder.create(f"{version}/more.bin", b"more", crc32c=crc32c_of(b"more"))
    with pytest.raises(UntrustedError, match=r"more\.bin is not in its manifest"):
        version_store_at(base, Trust(key.public)).fetched(version).__enter__()


def test_manifest_or_signature_beyond_the_limit_is_not_read(model, base, key_files, cloud, monkeypatch):
    key = read_signing_key(SigningSettings(str(key_files()[0])))
    version = publish_to_bucket(model, base=base, extras=Extras(key)).version
    store = version_store_at(base, Trust(key.public))
    assert store.problem(version) == ""
    monkeypatch.setattr(publishing, "MOST_BYTES", 10)
    assert store.problem(version) == "it is not signed: it has no model.sig"
    assert store.signature(version) is None
    assert version_store_at(base).manifest(version) is None
    assert version_store_at(base).problem(version) == NO_MANIFEST


def test_saved_model_comes_last_and_everything_is_create_only(model, base, cloud):
    published = publish_to_bucket(model, base=base)
    writes = [r for r in cloud.requests() if r.startswith("POST") and "ifGenerationMatch=0" in r]
    assert "rewriteTo" in writes[-1]
    assert f"{published.version}/saved_model.pb" in writes[-1]
    assert "ifSourceGenerationMatch=" in writes[-1]
    assert len([r for r in cloud.requests() if r.startswith("POST")]) == len(writes)


def test_same_model_is_found_and_nothing_is_written(model, base, cloud):
    first = publish_to_bucket(model, base=base)
    cloud.forget_requests()
    second = publish_to_bucket(model, base=base)
    assert (second.version, second.was_there) == (first.version, True)
    assert {request.split()[0] for request in cloud.requests()} == {"GET"}


def test_changed_models_get_increasing_versions_also_within_a_second(model, base):
    found = []
    for number in range(3):
        (model / "saved_model.pb").write_bytes(b"graph%d" % number)
        found.append(publish_to_bucket(model, base=base).version)
    assert found == sorted(set(found))


@pytest.mark.parametrize("kind", [503, 429, "drop", "lost"])
def test_each_request_in_turn_may_fail_once_and_the_version_is_published(model, base, cloud, kind):
    for number in itertools.count():
        each = f"{base}{number}"
        cloud.forget_requests()
        cloud.fail({"kind": kind, "skip": number})
        published = publish_to_bucket(model, base=each)
        asked = len(cloud.requests())
        cloud.fail()
        assert not published.was_there
        assert partial(each) == {}
        if asked <= number:
            break
    assert number >= 11


def test_store_that_goes_away_at_any_request_leaves_nothing_visible(model, base, cloud, monkeypatch):
    def publish_impatiently(base):
        """In a process of its own: once the store is away, it stays away."""
        monkeypatch.setattr(google_folder, "RETRY_S", 0.02)
        monkeypatch.setattr(google_folder, "FIRST_ANSWER_S", 2.0)
        publish_to_bucket(model, base=base)

    for number in itertools.count():
        each = f"{base}{number}"
        cloud.fail({"kind": 503, "skip": number, "times": 10_000})
        # In a process that ends: whoever comes next sees that its publisher is dead.
        failing = in_child(lambda each=each: publish_impatiently(each))
        failed = os.waitstatus_to_exitcode(os.waitpid(failing, 0)[1]) != 0
        cloud.fail()
        assert partial(each) == {}, number
        published = publish_to_bucket(model, base=each)
        assert partial(each) == {}, number
        assert left_in(each) == [], number
        if not failed:
            assert published.was_there
            break
    assert number >= 10


def seconds_of_a_push(model, base):
    """The shortest of three pushes: any may have been held up."""
    lasted_s = []
    for number in range(3):
        (model / "saved_model.pb").write_bytes(b"timed %d" % number)
        began = time.monotonic()
        publish_to_bucket(model, base=base)
        lasted_s.append(time.monotonic() - began)
    return min(lasted_s)


def left_in(base):
    with contextlib.closing(Folder(base)) as folder:
        return leftovers(folder.list())


@pytest.mark.external
def test_publisher_killed_at_random_moments_leaves_no_partial_version(model, base):
    # Sent in more than one request.
    (model / "variables/variables.data-00000-of-00001").write_bytes(bytes(8 * 2**20 + 1))
    usual_s = seconds_of_a_push(model, base)
    random.seed(7)
    outcomes = []
    for number in range(6):
        each = f"{base}{number // 3}"
        (model / "saved_model.pb").write_bytes(b"model %d" % number)
        child = in_child(lambda each=each: publish_to_bucket(model, base=each))
        time.sleep(random.uniform(0, usual_s))  # noqa: S311
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        outcomes.append(publish_to_bucket(model, base=each).was_there)
        assert left_in(each) == [], number
        assert partial(each) == {}, number
    assert False in outcomes


def test_publishers_of_two_models_get_a_whole_version_each(model, base, tmp_path, contents):
    other = tmp_path / "other"
    (other / "assets").mkdir(parents=True)
    (other / "assets/words").write_bytes(b"words")
    for number in range(4):
        (model / "saved_model.pb").write_bytes(b"one %d" % number)
        (other / "saved_model.pb").write_bytes(b"two %d" % number)
        before = complete_versions(contents())
        racers = [in_child(lambda m=m: publish_to_bucket(m, base=base)) for m in (model, other)]
        assert [os.waitstatus_to_exitcode(os.waitpid(racer, 0)[1]) for racer in racers] == [0, 0]
        assert len(complete_versions(contents())) == len(before) + 2, number
    assert partial(base) == {}


def test_publishers_of_one_model_agree_on_one_version(model, base, contents):
    for number in range(4):
        (model / "saved_model.pb").write_bytes(b"model %d" % number)
        racers = [in_child(lambda: publish_to_bucket(model, base=base)) for _ in range(2)]
        assert [os.waitstatus_to_exitcode(os.waitpid(racer, 0)[1]) for racer in racers] == [0, 0]
        assert len(complete_versions(contents())) == number + 1
    assert partial(base) == {}
    assert not [name for name in contents() if name.startswith(".pushing/")]


def test_publisher_of_the_same_model_elsewhere_is_waited_for_and_then_passed(
    model, base, monkeypatch, contents
):
    with monkeypatch.context() as dying:
        dying.setattr(model_lock, "this_process", lambda: "elsewhere:1:1")
        dying.setattr(publishing, "_published", lambda *_: os._exit(0))
        os.waitpid(in_child(lambda: publish_to_bucket(model, base=base)), 0)
    assert [name.split("/")[0] for name in contents()] == [".pushing"]
    slept_s = []
    clock = SimpleNamespace(monotonic=lambda: sum(slept_s), sleep=slept_s.append)
    monkeypatch.setattr(model_lock, "time", clock)
    monkeypatch.setattr(model_lock, "LOOK_S", 0.5)
    assert not publish_to_bucket(model, base=base).was_there
    assert model_lock.WAIT_S < sum(slept_s) <= model_lock.WAIT_S + model_lock.LOOK_S
    assert not [name for name in contents() if name.startswith(".pushing/")]
    assert partial(base) == {}


def read_until(stop, base, told):
    """Looks all the time what a server would load, and checks each byte of it; then tells what it saw."""
    sound, problems, looks = set(), {}, 0
    with contextlib.closing(Folder(base)) as folder:
        while not stop.exists():
            looks += 1
            for version in set(complete_versions(folder.list())) - sound:
                if problem := verify_in_bucket(folder, version):
                    problems[version] = problem
                sound.add(version)
    told.write_text(json.dumps({"sound": sorted(sound), "problems": problems, "looks": looks}))


@pytest.fixture
def reader(base, tmp_path):
    """Reads in a process of its own; when called, ends that and gives what it saw."""
    stop, told = tmp_path / "stop", tmp_path / "told.json"
    child = in_child(lambda: read_until(stop, base, told))

    def end():
        stop.touch()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        return json.loads(told.read_text())

    yield end
    stop.touch()


@pytest.mark.external
def test_reader_sees_whole_versions_only_while_a_hundred_pushes_are_killed(model, base, cloud, reader):
    usual_s = seconds_of_a_push(model, base)
    random.seed(11)
    killed = 0
    for number in range(100):
        (model / "saved_model.pb").write_bytes(b"model %d" % number)
        child = in_child(lambda: publish_to_bucket(model, base=base))
        time.sleep(random.uniform(0, 1.2 * usual_s))  # noqa: S311
        os.kill(child, signal.SIGKILL)
        was_killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
        killed += was_killed
        usual_s *= 1.1 if was_killed else 0.8  # the machine may be busier or quieter than it was before
    published = publish_to_bucket(model, base=base)
    seen = reader()
    assert killed >= 50
    assert seen["problems"] == {}
    assert seen["looks"] >= 20
    assert len(seen["sound"]) >= 2
    assert left_in(base) == []
    assert partial(base) == {}
    assert published.version >= max(seen["sound"])


def test_reader_sees_whole_versions_only_while_writes_fail(model, base, cloud, reader):
    random.seed(11)
    for number in range(10):
        (model / "saved_model.pb").write_bytes(b"model %d" % number)
        # Only writes: the reader is to see what they leave.
        faults = [
            {"kind": kind, "method": "POST", "skip": random.randrange(6)}  # noqa: S311
            for kind in random.sample([503, 429, "drop", "lost"], 2)
        ]
        cloud.fail(*faults)
        publish_to_bucket(model, base=base)
    cloud.fail()
    seen = reader()
    assert seen["problems"] == {}
    assert len(seen["sound"]) >= 9
    assert partial(base) == {}


def test_publisher_taken_for_dead_cannot_complete_its_version(model, base, tmp_path, monkeypatch, contents):
    other = tmp_path / "other"
    other.mkdir()
    (other / "saved_model.pb").write_bytes(b"other")
    copy = Folder.copy

    def stopped_before_the_end(folder, staged, name):
        monkeypatch.setattr(Folder, "copy", copy)
        with monkeypatch.context() as later:
            later.setattr(publishing, "DEAD_AFTER", timedelta(0))
            publish_to_bucket(other, base=base)
        copy(folder, staged, name)

    monkeypatch.setattr(Folder, "copy", stopped_before_the_end)
    with pytest.raises(TakenError):
        publish_to_bucket(model, base=base)
    assert len(complete_versions(contents())) == 1
    assert partial(base) == {}
    assert leftovers(contents()) == []


def test_publisher_elsewhere_that_wrote_lately_is_left_alone(model, base, monkeypatch, contents):
    with monkeypatch.context() as dying:
        dying.setattr(publishing, "this_process", lambda: "elsewhere:1:1")
        dying.setattr(Folder, "copy", lambda *_: os._exit(0))
        os.waitpid(in_child(lambda: publish_to_bucket(model, base=base)), 0)
    left = leftovers(contents())
    assert left
    (model / "saved_model.pb").write_bytes(b"other")
    publish_to_bucket(model, base=base)
    assert set(left) <= set(leftovers(contents()))
    monkeypatch.setattr(publishing, "DEAD_AFTER", timedelta(0))
    publish_to_bucket(model, base=base)
    assert leftovers(contents()) == []


def test_corrupted_answer_is_asked_for_again_and_never_taken(model, base, cloud):
    published = publish_to_bucket(model, base=base)
    fault = {"kind": "corrupt", "match": r"/download/.*variables\.index", "times": 1}
    cloud.fail(fault)
    assert partial(base) == {}
    cloud.fail({**fault, "times": 100})
    with (
        contextlib.closing(Folder(base)) as folder,
        pytest.raises(ComponentError, match="was corrupted on the way"),
    ):
        verify_in_bucket(folder, published.version)


def test_version_that_was_changed_in_the_bucket_is_pushed_again(model, base):
    first = publish_to_bucket(model, base=base)
    name = f"{first.version}/variables/variables.index"
    with contextlib.closing(Folder(base, writer="somebody")) as folder:
        folder.create(name, b"iNdex", crc32c=crc32c_of(b"iNdex"), over=folder.find(name))
        assert verify_in_bucket(folder, first.version) == (
            "variables/variables.index does not match its manifest.json"
        )
    assert publish_to_bucket(model, base=base).version > first.version
    assert list(partial(base)) == [first.version]


@pytest.fixture
def told_in_time(monkeypatch):
    """The error of work that gets no answer; tries that go on as after an answer would outlast the test."""
    monkeypatch.setattr(google_folder, "RETRY_S", 3600.0)
    return error_of


def test_bucket_that_does_not_exist_is_named_with_the_command_to_make_it(model, cloud, told_in_time):
    error = told_in_time(lambda: publish_to_bucket(model, base="gs://nowhere/taxi"))
    assert "there is no bucket 'nowhere'" in error.message
    assert "gcloud storage buckets create gs://nowhere" in error.hint


def test_object_that_is_gone_is_not_taken_for_a_missing_bucket(cloud):
    cloud.make_bucket("our-bucket-of-models")
    with contextlib.closing(Folder("gs://our-bucket-of-models/taxi", writer="somebody")) as folder:
        folder.create("1/a", b"a", crc32c=crc32c_of(b"a"))
        seen = folder.find("1/a")
        folder.delete(seen)
        with pytest.raises(ComponentError, match="was replaced or deleted after it was listed"):
            folder.read(seen)
        with pytest.raises(TakenError, match="1/a was replaced or deleted by another publisher"):
            folder.copy(seen, "2/a")


def test_denied_permission_names_what_is_needed(model, base, cloud, told_in_time):
    cloud.fail({"kind": 403, "times": 100})
    error = told_in_time(lambda: publish_to_bucket(model, base=base))
    assert "permission denied" in error.message
    assert "storage.objects.create" in error.hint


def test_store_that_does_not_answer_is_reported_in_time_and_meanwhile(
    model, base, cloud, told_in_time, monkeypatch, capsys
):
    said, say = threading.Event(), store_waits._say

    def ask_once_it_is_told(folder, ask, limit_s):
        if hasattr(folder, "_answered"):  # else it is being made, which is no wait for the store
            assert said.wait(60)
        return ask()

    monkeypatch.setattr(Folder, "_soon", ask_once_it_is_told)
    monkeypatch.setattr(store_waits, "_say", lambda words: (say(words), said.set()))
    monkeypatch.setattr(google_folder, "FIRST_ANSWER_S", 1.0)
    monkeypatch.setattr(store_waits, "FIRST_S", 0.02)
    cloud.fail({"kind": 503, "times": 10_000})
    assert "cannot be used: RetryError" in told_in_time(lambda: publish_to_bucket(model, base=base)).message
    told = capsys.readouterr().err
    assert f"waiting for {base}, " in told
    assert "given up after about 1 s without an answer" in told


def test_missing_credentials_come_with_the_command_to_log_in(model, monkeypatch, tmp_path, told_in_time):
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    error = told_in_time(lambda: publish_to_bucket(model, base="gs://b/taxi"))
    assert "no credentials" in error.message
    assert error.hint.startswith("gcloud auth application-default login ")


class Refusing(loopback.JsonAnswers, BaseHTTPRequestHandler):
    def do_POST(self):
        self.answer(400, {"error": "invalid_grant", "error_description": "Invalid JWT Signature."})


@pytest.mark.parametrize("answers", [True, False], ids=["refused", "no server"])
def test_wrong_credentials_are_reported(model, monkeypatch, told_in_time, log_in, answers):
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    with contextlib.ExitStack() as until_told:
        log_in(until_told.enter_context(loopback.running(loopback.Server(("127.0.0.1", 0), Refusing))))
        if not answers:
            until_told.close()
            monkeypatch.setattr(google_folder, "FIRST_ANSWER_S", 1.0)
        error = told_in_time(lambda: publish_to_bucket(model, base="gs://b/taxi"))
    assert "gs://b/taxi" in error.message
    assert error.hint
    if answers:
        assert "the credentials do not work" in error.message
        assert "invalid_grant" in error.message


@pytest.mark.parametrize("address", ["gs://", "gs:///x", "gs://b", "gs://b/"])
def test_address_without_bucket_and_folder_is_refused(model, address):
    with pytest.raises(ComponentError, match="must be gs://BUCKET/FOLDER"):
        publish_to_bucket(model, base=address)


def test_versions_in_a_bucket_are_fetched_whole_and_thinned_out(model, base):
    found = []
    for number in range(3):
        (model / "saved_model.pb").write_bytes(b"graph%d" % number)
        found.append(publish_to_bucket(model, base=base, provenance={"workload": "taxi"}).version)
    store = version_store_at(base)
    assert store.numbers() == found
    assert store.manifest(found[0]).provenance["workload"] == "taxi"
    with store.fetched(found[0]) as folder:
        assert (folder / "saved_model.pb").read_bytes() == b"graph0"
        assert (folder / "variables/variables.index").read_bytes() == b"index"
    assert thin_out(base, keep=1) == found[:2]
    assert version_store_at(base).numbers() == found[2:]


def test_version_of_a_bucket_whose_object_is_named_out_of_it_is_not_fetched(model, base, monkeypatch):
    version = publish_to_bucket(model, base=base).version
    found = Folder.list

    def with_evil(folder, below=""):
        seen = found(folder, below)
        stored = next(iter(seen.values()))
        return {**seen, f"{version}/../../evil": stored}

    monkeypatch.setattr(Folder, "list", with_evil)
    with pytest.raises(ComponentError, match="leads out of it"), version_store_at(base).fetched(version):
        pass


def test_artifact_in_a_bucket_is_brought_here_and_one_on_disk_is_itself(base, tmp_path):
    with contextlib.closing(Folder(base)) as folder:
        for name in ("Format-Serving/saved_model.pb", "BLESSED"):
            folder.create(name, name.encode(), crc32c=crc32c_of(name.encode()))
    with on_this_machine(base) as here:
        assert (here / "Format-Serving/saved_model.pb").read_bytes() == b"Format-Serving/saved_model.pb"
        assert (here / "BLESSED").is_file()
    assert not here.exists()
    with on_this_machine(f"{base}/nothing") as here:
        assert list(here.iterdir()) == []
    with on_this_machine(str(tmp_path)) as here:
        assert here == tmp_path


def test_objects_that_stand_for_folders_are_no_files_of_a_version_or_an_artifact(model, base):
    version = publish_to_bucket(model, base=base).version
    with contextlib.closing(Folder(base)) as folder:
        for name in ("", f"{version}/", f"{version}/variables/"):
            folder.create(name, b"", crc32c=EMPTY_CRC32C)
        assert verify_in_bucket(folder, version) == ""
    with version_store_at(base).fetched(version) as fetched:
        assert (fetched / "saved_model.pb").is_file()
    with on_this_machine(f"{base}/{version}") as here:
        assert (here / "saved_model.pb").is_file()


def test_rollback_in_a_bucket_makes_the_earlier_model_the_newest(model, base, tmp_path):
    config = small_workload(push={"destination": base})
    first = publish_to_bucket(model, base=base, provenance={"workload": "toy"}).version
    (model / "saved_model.pb").write_bytes(b"worse")
    second = publish_to_bucket(model, base=base, provenance={"workload": "toy"}).version
    done = rollback(config, tmp_path / "output", to=None)
    assert (done.target, done.instead_of) == (first, second)
    with version_store_at(base).fetched(done.published.version) as folder:
        assert (folder / "saved_model.pb").read_bytes() == b"graph"
    assert list(verify(base)) == [
        Verified(f"{base}/{n}", "") for n in (first, second, done.published.version)
    ]
