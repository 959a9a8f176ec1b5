"""Files on disk that change or may not be read: each is named, with the remedy."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from slipway.components.ingest.blocks import FileError
from slipway.components.ingest.storage import fetched, list_files

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
