"""Content decides, and the memo never says otherwise."""

import hashlib
import json
import os
import time
from pathlib import Path

import pytest

from slipway.pipeline.errors import PipelineError
from slipway.pipeline.fingerprint.data_digests import data_digests

ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # sha256("abc"), FIPS 180-2


@pytest.fixture
def hashed(monkeypatch):
    """Counts the files whose content is read."""
    names = []
    real = hashlib.file_digest

    def counting(stream, algorithm):
        names.append(Path(stream.name).name)
        return real(stream, algorithm)

    monkeypatch.setattr(hashlib, "file_digest", counting)
    return names


@pytest.fixture
def later(monkeypatch):
    """Lets the clock of the hashing stand ten seconds ahead, so that files just written have settled."""
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + 10_000_000_000)


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "data"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.csv").write_text("abc")
    (folder / "sub/b.csv").write_text("b")
    return folder


def rewrite(file, text):
    """Gives a file another content at a later time, on whatever clock its file system has.

    Before Linux 6.13, and on some file systems since, that clock stands still for 4 ms.
    """
    before = file.stat().st_ctime_ns
    while file.stat().st_ctime_ns == before:
        file.write_text(text)


def digests(data, memo=None):
    return data_digests(sorted(data.rglob("*.csv")), base=data, memo=memo)


def test_digest_is_the_sha256_of_the_content_by_relative_name(data):
    assert digests(data) == {
        "a.csv": ABC,
        "sub/b.csv": "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d",
    }


def test_no_files_give_no_digests(tmp_path):
    assert data_digests([], base=tmp_path, memo=tmp_path / "memo.json") == {}
    assert not (tmp_path / "memo.json").exists()


def test_order_and_repetition_of_files_do_not_matter(data):
    files = [data / "sub/b.csv", data / "a.csv", data / "sub/../a.csv"]
    assert list(data_digests(files, base=data, memo=None).items()) == list(digests(data).items())


def test_file_outside_the_base_keeps_its_absolute_name(data):
    assert data_digests([data / "a.csv"], base=data / "sub", memo=None) == {str(data / "a.csv"): ABC}


def test_large_files_hashed_side_by_side_give_the_same_digests(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    contents = {f"{i}.bin": bytes([i]) * (2_000_000 if i % 2 else 10) for i in range(8)}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    expected = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    assert data_digests(list(tmp_path.iterdir()), base=tmp_path, memo=None) == expected


def test_link_stands_for_the_content_it_leads_to(data, later):
    (data / "link.csv").symlink_to("a.csv")
    memo = data / "memo.json"
    assert digests(data, memo)["link.csv"] == ABC
    rewrite(data / "a.csv", "xyz")
    assert digests(data, memo)["link.csv"] != ABC


def test_settled_file_is_read_once(data, tmp_path, hashed, later):
    memo = tmp_path / "cache/memo.json"
    first = digests(data, memo)
    assert sorted(hashed) == ["a.csv", "b.csv"]
    assert digests(data, memo) == first
    assert sorted(hashed) == ["a.csv", "b.csv"]


def test_without_a_memo_every_file_is_read_each_time(data, hashed, later):
    digests(data)
    digests(data)
    assert len(hashed) == 4


def test_file_just_written_is_not_remembered(data, tmp_path, hashed):
    memo = tmp_path / "memo.json"
    digests(data, memo)
    digests(data, memo)
    assert len(hashed) == 4


def test_file_is_remembered_two_seconds_after_its_last_change(data, tmp_path, hashed, monkeypatch):
    real = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: real() + 2_100_000_000)
    digests(data, tmp_path / "memo.json")
    digests(data, tmp_path / "memo.json")
    assert len(hashed) == 2


def test_file_that_changes_while_it_is_read_is_not_remembered(data, tmp_path, monkeypatch, later):
    real = hashlib.file_digest

    def slow(stream, algorithm):
        digest = real(stream, algorithm)
        if stream.name.endswith("a.csv"):
            rewrite(data / "a.csv", "abd")
        return digest

    memo = tmp_path / "memo.json"
    monkeypatch.setattr(hashlib, "file_digest", slow)
    assert digests(data, memo)["a.csv"] == ABC
    assert list(json.loads(memo.read_text())["files"]) == [str(data / "sub/b.csv")]


def test_edit_of_the_same_size_with_restored_mtime_is_noticed(data, tmp_path, later):
    memo = tmp_path / "memo.json"
    times = (data / "a.csv").stat()
    before = digests(data, memo)
    rewrite(data / "a.csv", "abd")
    os.utime(data / "a.csv", ns=(times.st_atime_ns, times.st_mtime_ns))
    now = (data / "a.csv").stat()
    assert (now.st_size, now.st_mtime_ns, now.st_ino) == (times.st_size, times.st_mtime_ns, times.st_ino)
    assert digests(data, memo)["a.csv"] != before["a.csv"]


def test_replacement_by_an_older_file_of_the_same_size_is_noticed(data, tmp_path, later):
    memo = tmp_path / "memo.json"
    other = tmp_path / "other.csv"
    other.write_text("xyz")
    times = (data / "a.csv").stat()
    digests(data, memo)
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    other.rename(data / "a.csv")
    assert digests(data, memo)["a.csv"] == hashlib.sha256(b"xyz").hexdigest()


def test_touched_file_is_read_again_and_is_the_same(data, tmp_path, hashed, later):
    memo = tmp_path / "memo.json"
    before = digests(data, memo)
    os.utime(data / "a.csv", (1, 1))
    assert digests(data, memo) == before
    assert sorted(hashed) == ["a.csv", "a.csv", "b.csv"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 40,
        b'{"version": 1, "fil',
        b"[]",
        b"[" * 100_000,
        b'{"version": 1}',
        b'{"version": 1, "files": []}',
        b'{"version": 99, "files": {}}',
    ],
)
def test_damaged_memo_is_replaced(data, tmp_path, hashed, later, content):
    memo = tmp_path / "memo.json"
    expected = digests(data)
    memo.write_bytes(content)
    assert digests(data, memo) == expected
    assert digests(data, memo) == expected
    assert len(hashed) == 4
    assert list(tmp_path.glob(".memo*")) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda entry: entry[:4],
        lambda entry: [*entry[:4], "not hex"],
        lambda entry: [*entry[:4], None],
        lambda entry: [entry[0] + 1, *entry[1:4], "0" * 64],
        lambda entry: [[], {}, None, "", "0" * 64],
        lambda entry: "text",
        lambda entry: None,
    ],
)
def test_damaged_entry_is_not_believed(data, tmp_path, later, damage):
    memo = tmp_path / "memo.json"
    expected = digests(data, memo)
    content = json.loads(memo.read_text())
    content["files"] = {path: damage(entry) for path, entry in content["files"].items()}
    memo.write_text(json.dumps(content))
    assert digests(data, memo) == expected


def test_memo_keeps_other_files_and_forgets_deleted_ones(data, tmp_path, later):
    memo = tmp_path / "memo.json"
    a, b, c = data / "a.csv", data / "sub/b.csv", data / "c.csv"
    data_digests([a, b], base=data, memo=memo)
    b.unlink()
    c.write_text("c")
    data_digests([c], base=data, memo=memo)
    assert sorted(json.loads(memo.read_text())["files"]) == [str(a), str(c)]


def test_memo_that_cannot_be_written_warns_and_the_digests_are_right(data, tmp_path, later):
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match=r"memo\.json: not written .* reads all data again"):
        assert digests(data, tmp_path / "file/memo.json")["a.csv"] == ABC


def test_missing_file_is_an_error_that_names_it(data):
    with pytest.raises(PipelineError, match=r"missing\.csv: cannot be read as a data file \(No such file"):
        data_digests([data / "missing.csv"], base=data, memo=None)


def test_folder_or_pipe_in_place_of_a_file_is_refused_at_once(data):
    os.mkfifo(data / "pipe.csv")
    for path in (data / "sub", data / "pipe.csv"):
        with pytest.raises(PipelineError, match="not a regular file"):
            data_digests([path], base=data, memo=None)
