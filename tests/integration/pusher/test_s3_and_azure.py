"""s3:// and az:// as destinations, against Moto's server and Azurite: whole or not at all, as on gs://."""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from small_workload import small_workload

from slipway.components import s3_and_azure_store
from slipway.components.errors import ComponentError
from slipway.components.pusher import model_lock
from slipway.components.pusher import publish_to_bucket as publishing
from slipway.components.pusher.destination import find_unwritable, push
from slipway.components.pusher.publish_to_bucket import complete_versions, verify_in_bucket
from slipway.components.pusher.retention import thin_out
from slipway.components.pusher.s3_and_azure_folder import S3AndAzureFolder
from slipway.components.pusher.stored_folder import EMPTY_CRC32C, TakenError, crc32c_of, folder_at
from slipway.components.pusher.version_store import version_store_at
from slipway.pipeline.commands.verify import Verified, verify
from slipway.pipeline.commands.versions import rollback

pytestmark = pytest.mark.slow
S3_ONLY = pytest.mark.parametrize("object_server", ["s3"], indirect=True)


@pytest.fixture
def base(object_server, monkeypatch):
    monkeypatch.setattr(model_lock, "LOOK_S", 0.02)
    # A busy machine takes its time.
    monkeypatch.setattr("slipway.components.pusher.s3_and_azure_folder.FIRST_ANSWER_S", 120.0)
    return f"{object_server.make_bucket()}/serving/taxi"


@pytest.fixture
def contents(base):
    return lambda: folder_at(base).list()


def problems(base):
    folder = folder_at(base)
    return [verify_in_bucket(folder, version) for version in complete_versions(folder.list())]


def staged(seen):
    """The staged files, without the tombstones, which stay."""
    return [
        name
        for name, each in seen.items()
        if name[:9] == ".staging/" and "slipway-tombstone" not in each.labels
    ]


def test_versions_are_pushed_verified_fetched_rolled_back_and_thinned_out(model, base, tmp_path, contents):
    first = push(model, base=base, provenance={"workload": "toy"})
    assert push(model, base=base, provenance={"workload": "toy"}) == type(first)(first.version, base, True)
    (model / "saved_model.pb").write_bytes(b"worse")
    second = push(model, base=base, provenance={"workload": "toy"})
    config = small_workload(push={"destination": base})
    third = rollback(config, tmp_path / "output", to=None).published
    numbers = [each.version for each in (first, second, third)]
    store = version_store_at(base)
    assert store.numbers() == numbers
    assert list(verify(base)) == [Verified(f"{base}/{number}", "") for number in numbers]
    assert store.manifest(second.version).provenance["workload"] == "toy"
    with store.fetched(third.version) as folder:
        assert (folder / "saved_model.pb").read_bytes() == b"graph"
        assert (folder / "variables/variables.index").read_bytes() == b"index"
    assert staged(contents()) == []
    assert thin_out(base, keep=1) == numbers[:2]
    assert store.numbers() == numbers[2:]


def test_version_that_was_changed_in_the_store_is_pushed_again(model, base):
    first = push(model, base=base)
    name = f"{first.version}/variables/variables.index"
    folder = folder_at(base, writer="somebody")
    folder.create(name, b"iNdex", crc32c=crc32c_of(b"iNdex"), over=folder.find(name))
    assert problems(base) == ["variables/variables.index does not match its manifest.json"]
    assert push(model, base=base).version > first.version


def test_object_is_written_once_and_replaced_only_as_it_was_seen(base):
    ours, theirs = folder_at(base, writer="us"), folder_at(base, writer="them")
    ours.create("x", b"1", crc32c=crc32c_of(b"1"), labels={"slipway-process": "p"})
    seen = ours.find("x")
    assert ours.is_own(seen, crc32c_of(b"1"))
    assert seen.labels["slipway-process"] == "p"
    with pytest.raises(TakenError):
        theirs.create("x", b"2", crc32c=crc32c_of(b"2"))
    theirs.create("x", b"2", crc32c=crc32c_of(b"2"), over=seen)
    ours.create("mark", b"", crc32c=EMPTY_CRC32C)
    mark = ours.find("mark")
    theirs.create("mark", b"", crc32c=EMPTY_CRC32C, over=mark)
    with pytest.raises(TakenError):
        ours.create("mark", b"", crc32c=EMPTY_CRC32C, over=mark)
    for late in (
        lambda: ours.create("x", b"3", crc32c=crc32c_of(b"3"), over=seen),
        lambda: ours.read(seen),
        lambda: ours.copy(seen, "y"),
    ):
        with pytest.raises(ComponentError):
            late()
    ours.delete(seen)
    assert ours.read(ours.find("x")) == b"2"
    assert ours.find("y") is None


def died_while(monkeypatch, work):
    """Do the work of a publisher on another machine that is gone afterwards, and cleans nothing up."""
    with monkeypatch.context() as dying:
        dying.setattr(publishing, "this_process", lambda: "elsewhere:1:1")
        dying.setattr(model_lock, "this_process", lambda: "elsewhere:1:1")
        dying.setattr(publishing, "_remove", lambda *_: None)
        dying.setattr(S3AndAzureFolder, "delete", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            work(dying)


def interrupted(*_):
    raise KeyboardInterrupt


def test_remains_of_a_dead_publisher_are_removed_after_an_hour(model, base, monkeypatch, contents):
    def work(dying):
        dying.setattr(S3AndAzureFolder, "copy", interrupted)
        push(model, base=base)

    died_while(monkeypatch, work)
    (model / "saved_model.pb").write_bytes(b"other")
    push(model, base=base)
    assert len(staged(contents())) == 1, "it wrote lately"
    monkeypatch.setattr(publishing, "DEAD_AFTER", timedelta(0))
    assert push(model, base=base).was_there
    assert staged(contents()) == []
    assert len(complete_versions(contents())) == 1
    assert problems(base) == [""]


def push_until_the_last_write(patch, model, base):
    put = S3AndAzureFolder._put

    def until_the_end(folder, name, *more):
        return interrupted() if is_last(name) else put(folder, name, *more)

    patch.setattr(S3AndAzureFolder, "_put", until_the_end)
    push(model, base=base)


def is_last(name):
    return name.endswith("/saved_model.pb") and name[0] != "."


def test_copy_that_a_dead_publisher_has_begun_is_ended(model, base, monkeypatch, contents):
    died_while(monkeypatch, lambda dying: push_until_the_last_write(dying, model, base))
    assert complete_versions(contents()) == []
    monkeypatch.setattr(publishing, "DEAD_AFTER", timedelta(0))
    assert push(model, base=base).was_there
    assert problems(base) == [""]
    assert staged(contents()) == []


def test_publisher_taken_for_dead_cannot_complete_its_version(model, base, tmp_path, monkeypatch, contents):
    other = tmp_path / "other"
    other.mkdir()
    (other / "saved_model.pb").write_bytes(b"other")
    copy = S3AndAzureFolder.copy

    def stopped_before_the_end(folder, source, name):
        monkeypatch.setattr(S3AndAzureFolder, "copy", copy)
        with monkeypatch.context() as later:
            later.setattr(publishing, "DEAD_AFTER", timedelta(0))
            push(other, base=base)
        copy(folder, source, name)

    monkeypatch.setattr(S3AndAzureFolder, "copy", stopped_before_the_end)
    with pytest.raises(TakenError):
        push(model, base=base)
    assert len(complete_versions(contents())) == 1
    assert problems(base) == [""]


def test_cleanup_that_saw_the_source_before_its_copy_began_cannot_stop_it(model, base, monkeypatch, contents):
    copy, seen_before = S3AndAzureFolder.copy, {}

    def with_a_late_tombstone(folder, source, name):
        seen_before.update(folder.list())
        put = S3AndAzureFolder._put

        def late(folder, put_name, *more):
            if put_name == name:
                cleaner = folder_at(base, writer="cleaner")
                monkeypatch.setattr(S3AndAzureFolder, "_put", put)
                publishing._remove(cleaner, int(name.split("/")[0]), seen_before)
            put(folder, put_name, *more)

        monkeypatch.setattr(S3AndAzureFolder, "_put", late)
        copy(folder, source, name)

    monkeypatch.setattr(S3AndAzureFolder, "copy", with_a_late_tombstone)
    version = push(model, base=base).version
    assert complete_versions(contents()) == [version]
    assert problems(base) == [""]


@S3_ONLY
@pytest.mark.parametrize("who", ["the publisher", "a cleanup"])
def test_last_write_after_the_version_was_ended_and_thinned_out_is_taken_back(
    model, base, monkeypatch, contents, who
):
    put, cleaner = S3AndAzureFolder._put, folder_at(base, writer="cleaner")

    def stopped_before_the_end(folder, name, *more):
        if is_last(name):
            monkeypatch.setattr(S3AndAzureFolder, "_put", put)
            end_and_remove(int(name.split("/")[0]))
        put(folder, name, *more)

    def end_and_remove(version):
        publishing._remove(cleaner, version, cleaner.list())
        publishing.remove_version(cleaner, version)

    if who == "the publisher":
        monkeypatch.setattr(S3AndAzureFolder, "_put", stopped_before_the_end)
        with pytest.raises(TakenError, match="was removed by another publisher"):
            push(model, base=base)
    else:
        died_while(monkeypatch, lambda dying: push_until_the_last_write(dying, model, base))
        seen = cleaner.list()
        [version] = [int(name.split("/")[1]) for name in seen if name.startswith(".claims/")]
        monkeypatch.setattr(S3AndAzureFolder, "_put", stopped_before_the_end)
        publishing._remove(folder_at(base), version, seen)
    assert [name for name in contents() if name[0] != "."] == []


@S3_ONLY
def test_removal_takes_what_a_late_publisher_creates_meanwhile(model, base, monkeypatch, contents):
    version = push(model, base=base).version
    delete, ours = S3AndAzureFolder.delete, folder_at(base)

    def late(folder, stored):
        delete(folder, stored)
        if stored.name == f"{version}/saved_model.pb":
            monkeypatch.setattr(S3AndAzureFolder, "delete", delete)
            ours.create(stored.name, b"graph", crc32c=crc32c_of(b"graph"))

    monkeypatch.setattr(S3AndAzureFolder, "delete", late)
    publishing.remove_version(folder_at(base), version)
    assert complete_versions(contents()) == []


def test_cleanup_that_another_one_overtakes_lets_the_push_go_on(model, base, monkeypatch, contents):
    died_while(monkeypatch, lambda dying: push_until_the_last_write(dying, model, base))
    monkeypatch.setattr(publishing, "DEAD_AFTER", timedelta(0))
    copy = S3AndAzureFolder.copy

    def overtaken(folder, source, name):
        monkeypatch.setattr(S3AndAzureFolder, "copy", copy)
        folder.create(name, b"theirs", crc32c=crc32c_of(b"theirs"))
        copy(folder, source, name)

    monkeypatch.setattr(S3AndAzureFolder, "copy", overtaken)
    push(model, base=base)
    assert problems(base)[-1] == ""


@S3_ONLY
def test_file_of_which_a_part_arrived_is_not_published(model, base, monkeypatch, contents):
    put = S3AndAzureFolder._put

    def cut(folder, name, content, *more):
        put(folder, name, b"wei" if name.endswith(".data-00000-of-00001") else content, *more)

    monkeypatch.setattr(S3AndAzureFolder, "_put", cut)
    with pytest.raises(ComponentError, match=r"data-00000-of-00001 is not what was uploaded"):
        push(model, base=base)
    assert complete_versions(contents()) == []


@S3_ONLY
def test_failed_replacement_of_an_unchanged_object_is_not_taken_for_another_publishers(base, object_server):
    ours = folder_at(base, writer="us")
    ours.create("x", b"1", crc32c=crc32c_of(b"1"))
    object_server.fail({"kind": 403, "method": "PUT"})
    with pytest.raises(ComponentError, match="permission denied"):
        ours.create("x", b"2", crc32c=crc32c_of(b"2"), over=ours.find("x"))


@S3_ONLY
def test_file_that_cannot_be_read_is_not_taken_for_an_error_of_the_store(base, tmp_path, monkeypatch):
    folder = folder_at(base)
    with pytest.raises(ComponentError, match=r"missing cannot be read: .*No such file"):
        folder.create("x", tmp_path / "missing", crc32c=EMPTY_CRC32C)
    folder.create("x", b"1", crc32c=crc32c_of(b"1"))
    with pytest.raises(OSError, match="No space left"):
        folder.fetch(folder.find("x"), Path("/dev/full"))


@S3_ONLY
def test_request_that_the_store_does_not_know_is_no_missing_condition(base, object_server, monkeypatch):
    monkeypatch.setattr("slipway.components.pusher.s3_and_azure_folder.FIRST_ANSWER_S", 0.5)
    object_server.fail({"kind": 501, "method": "HEAD", "times": 100})
    with pytest.raises(ComponentError, match="cannot be used"):
        folder_at(base).find("x")


@S3_ONLY
def test_foreign_object_with_an_empty_part_in_its_name_is_named(base, object_server):
    object_server.ask("PUT", f"/{base.removeprefix('s3://')}/a//x")
    with pytest.raises(ComponentError, match=r"'serving/taxi/a//x' cannot be read") as caught:
        folder_at(base).list()
    assert "rename or remove that object" in caught.value.hint


@S3_ONLY
def test_store_that_cannot_be_listed_is_told_before_a_run(base, object_server):
    object_server.fail({"kind": 403, "times": 100})
    assert "permission denied" in find_unwritable(base)


def test_what_can_be_pushed_to_is_written_to_before_a_run_and_left_as_it_was(base):
    assert find_unwritable(base) == ""
    assert folder_at(base).list() == {}


@S3_ONLY
@pytest.mark.parametrize("kind", ["unconditional", "no If-Match", 501])
def test_store_without_conditional_writes_is_told_before_a_run(base, object_server, kind, monkeypatch):
    monkeypatch.setitem(s3_and_azure_store.open_store.__kwdefaults__, "retry_s", 0.5)
    object_server.fail({"kind": kind, "method": "PUT", "times": 100})
    assert "has no conditional writes (If-None-Match and If-Match)" in find_unwritable(base)
    object_server.fail()
    assert folder_at(base).list() == {}


@S3_ONLY
def test_store_that_may_be_read_only_is_told_before_a_run(base, object_server):
    object_server.fail({"kind": 403, "method": "PUT", "times": 100})
    assert "permission denied" in find_unwritable(base)


PUBLISH = """
import sys
from pathlib import Path
from slipway.components.pusher.publish_to_bucket import publish_to_bucket
for number in range(5):
    publish_to_bucket(Path(sys.argv[1]), base=sys.argv[2])
"""


@S3_ONLY
def test_publishers_of_one_model_agree_on_one_version(model, base, contents):
    command = [sys.executable, "-c", PUBLISH, model, base]
    racers = [subprocess.Popen(command, env=dict(os.environ)) for _ in range(3)]
    assert [racer.wait() for racer in racers] == [0, 0, 0]
    assert len(complete_versions(contents())) == 1
    assert problems(base) == [""]


@S3_ONLY
@pytest.mark.parametrize("kind", [503, "lost"])
def test_push_succeeds_whichever_request_fails_once(model, base, object_server, kind, contents):
    for number in range(0, 30, 3):
        (model / "saved_model.pb").write_bytes(b"model %d" % number)
        object_server.fail({"kind": kind, "skip": number})
        push(model, base=base)
    object_server.fail()
    assert problems(base) == [""] * 10
    assert staged(contents()) == []


@S3_ONLY
@pytest.mark.parametrize("kind", ["unconditional", "no If-Match", 501])
def test_store_without_conditional_writes_is_refused_and_nothing_is_published(
    model, base, object_server, kind, monkeypatch
):
    monkeypatch.setitem(s3_and_azure_store.open_store.__kwdefaults__, "retry_s", 0.5)
    object_server.fail({"kind": kind, "method": "PUT", "times": 100})
    with pytest.raises(
        ComponentError, match=r"has no conditional writes \(If-None-Match and If-Match\)"
    ) as caught:
        push(model, base=base)
    assert "nothing is published" in caught.value.message
    object_server.fail()
    assert folder_at(base).list() == {}


@S3_ONLY
def test_denied_permission_names_what_is_needed_and_no_key(model, base, object_server):
    object_server.fail({"kind": 403, "times": 100})
    with pytest.raises(ComponentError, match="permission denied") as caught:
        push(model, base=base)
    assert "s3:ListBucket, GetObject, PutObject and DeleteObject" in caught.value.hint
    assert "hidden-key" not in str(caught.value)


def test_bucket_that_does_not_exist_is_named(model, base):
    with pytest.raises(ComponentError, match=r"there is no (bucket|container) 'b.*0'"):
        push(model, base=base.replace("/serving", "0/serving"))


@S3_ONLY
def test_objects_that_stand_for_folders_are_no_files_of_a_version(model, base, object_server):
    version = push(model, base=base).version
    for name in ("", f"{version}/", f"{version}/variables/"):
        object_server.ask("PUT", f"/{base.removeprefix('s3://')}/{name}")
    assert problems(base) == [""]
    with version_store_at(base).fetched(version) as folder:
        assert (folder / "variables/variables.index").is_file()


@S3_ONLY
def test_missing_library_is_told_before_a_run(base, monkeypatch):
    assert find_unwritable(base) == ""
    monkeypatch.setitem(sys.modules, "obstore.store", None)
    assert "pip install 'obstore" in find_unwritable(base)
