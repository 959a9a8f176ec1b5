"""Files on disk that change or may not be read: each is named, with the remedy."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.formats import FORMATS
from slipway.components.ingest.storage import fetched, list_files, matches

NOBODY = 65534


@pytest.fixture
def folder():
    """A folder that anybody may look into, which those of pytest are not."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def as_nobody():
    """Until the test ends, what only root may do is refused, also where root runs the tests."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    yield
    if before == 0:
        os.seteuid(before)


@pytest.fixture
def denied(folder):
    """A file and a folder that nobody may read."""
    (folder / "a.csv").write_text("a\n1\n")
    (folder / "a.csv").chmod(0)
    (folder / "sub").mkdir()
    (folder / "sub/b.csv").write_text("a\n1\n")
    (folder / "sub").chmod(0)
    yield folder
    (folder / "sub").chmod(0o755)


def test_file_that_may_not_be_read_is_named(denied, as_nobody):
    [file] = list_files(f"{denied}/*.csv")
    with pytest.raises(FileError) as caught, fetched(file):
        pass
    assert caught.value.message == f"{denied}/a.csv: permission denied"
    assert f"let user {os.geteuid()} read it" in caught.value.hint


@pytest.mark.parametrize("pattern", ["sub/*.csv", "sub/b.csv"])
def test_folder_that_may_not_be_read_is_not_taken_for_an_empty_one(denied, pattern, as_nobody):
    with pytest.raises(FileError, match=r"/sub: permission denied"):
        list_files(f"{denied}/{pattern}")


CHANGES = pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.unlink(), "was deleted after it was listed"),
        (lambda path: path.write_text("a\n23\n"), "was replaced or written to after it was listed"),
        (lambda path: os.utime(path, ns=(0, 0)), "was replaced or written to after it was listed"),
    ],
)


@CHANGES
def test_file_that_is_another_than_the_listed_one_is_not_read(folder, change, message):
    path = folder / "a.csv"
    path.write_text("a\n1\n")
    [file] = list_files(str(path))
    change(path)
    with pytest.raises(FileError, match=message) as caught, fetched(file):
        pass
    assert str(path) in caught.value.message
    assert caught.value.hint == "run again once nothing is writing there"


@CHANGES
def test_file_that_changes_while_it_is_read_is_not_taken(folder, change, message):
    path = folder / "a.csv"
    path.write_text("a\n1\n")
    [file] = list_files(str(path))

    with pytest.raises(FileError, match=message):
        _read_and(change, file)


def _read_and(change, file):
    with fetched(file) as here:
        assert here.path.read_bytes() == b"a\n1\n"
        change(here.path)


def test_folder_of_a_store_with_files_that_would_be_left_out_is_refused(folder):
    # Listed as in a store: `?*.csv` is what a folder in one stands for.
    (folder / "a.csv").write_text("a\n1\n")
    assert [Path(file.name).name for file in list_files(f"{folder}/?*.csv")] == ["a.csv"]
    (folder / "b.csv.gz").write_text("")
    with pytest.raises(FileError, match=r"two kinds, such as a\.csv and b\.csv\.gz") as caught:
        list_files(f"{folder}/?*.csv")
    assert caught.value.hint == f"name {folder}/*.csv* for all of them, or {folder}/*.csv for the first kind"
    assert len(list_files(f"{folder}/*.csv")) == 1
    (folder / "a.csv").unlink()
    with pytest.raises(FileError, match=r"holds no file \*\.csv, but b\.csv\.gz") as caught:
        list_files(f"{folder}/?*.csv")
    assert caught.value.hint == f"name {folder}/*.csv*"
    with pytest.raises(FileError, match=r"/none/\*\.csv matches no file"):
        list_files(f"{folder}/none/?*.csv")


@pytest.mark.parametrize("file_format", ["parquet", "npz", "csv"])
def test_names_in_capitals_in_a_folder_of_a_store_are_not_left_out(folder, file_format):
    for name in ("a", "B"):
        (folder / f"{name}.{file_format if name == 'a' else file_format.upper()}").touch()
    with pytest.raises(FileError, match=rf"two kinds, such as a\.{file_format} and B\.{file_format.upper()}"):
        list_files(f"{folder}/{FORMATS[file_format].in_store}")


def test_folders_of_a_store_may_hold_files_of_one_name(folder):
    for day in ("day=1", "day=2"):
        (folder / day).mkdir()
        (folder / day / "a.csv").write_text("a\n1\n")
    assert len(list_files(f"{folder}/day=*/?*.csv")) == 2


@pytest.mark.parametrize(
    ("name", "pattern", "found"),
    [
        ("d/a.csv", "d/*.csv", True),
        ("d/.a.csv", "d/*.csv", False),
        ("d/_a.csv", "d/*.csv", False),
        ("d/_a.csv", "d/_*.csv", True),
        ("_d/a.csv", "_d/*.csv", True),
        ("_d/a.csv", "*/*.csv", False),
        ("d/_SUCCESS", "d/*", False),
        ("d/_DSC1.JPG", "*/*", True),
    ],
)
def test_hidden_names_are_left_out_here_and_in_stores(folder, name, pattern, found):
    assert matches(name, pattern) is found
    (folder / name).parent.mkdir()
    (folder / name).touch()
    if found:
        assert [file.name for file in list_files(f"{folder}/{pattern}")] == [f"{folder}/{name}"]
    else:
        with pytest.raises(FileError, match="matches no file"):
            list_files(f"{folder}/{pattern}")
