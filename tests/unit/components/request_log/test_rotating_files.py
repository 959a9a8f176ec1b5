import os
import stat

import pytest

from slipway.components.request_log import rotating_files
from slipway.components.request_log.rotating_files import PATTERN, RotatingFiles


class Clock:
    now = 1_800_000_000.25

    def __call__(self):
        self.now += 1
        return self.now


@pytest.fixture
def clock():
    return Clock()


def contents(folder):
    return [file.read_bytes() for file in sorted(folder.glob(PATTERN))]


def test_only_the_owner_may_read(tmp_path, clock):
    files = RotatingFiles(tmp_path / "a/b", most_bytes=800, clock=clock)
    files.write(b"1\n")
    [file] = (tmp_path / "a/b").glob(PATTERN)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "a/b").stat().st_mode) == 0o700


def test_full_file_is_followed_by_another_and_the_oldest_go(tmp_path, clock):
    files = RotatingFiles(tmp_path, most_bytes=80, clock=clock)
    for number in range(100):
        files.write(f"{number:04}\n".encode())
        assert sum(map(len, contents(tmp_path))) <= 80
    kept = b"".join(contents(tmp_path)).split()
    assert kept == [f"{number:04}".encode() for number in range(100 - len(kept), 100)]
    assert len(kept) >= 12


def test_file_of_yesterday_is_not_gone_on_with(tmp_path, clock):
    files = RotatingFiles(tmp_path, most_bytes=800, clock=clock)
    files.write(b"1\n")
    clock.now += 86_400
    files.write(b"2\n")
    assert contents(tmp_path) == [b"1\n", b"2\n"]


def test_two_processes_write_files_of_their_own(tmp_path, clock):
    one, two = (RotatingFiles(tmp_path, most_bytes=800, clock=clock) for _ in range(2))
    one.write(b"1\n")
    two.write(b"2\n")
    one.write(b"3\n")
    assert contents(tmp_path) == [b"1\n3\n", b"2\n"]


def test_after_a_full_disk_lines_begin_a_file(tmp_path, clock, monkeypatch):
    files = RotatingFiles(tmp_path, most_bytes=800, clock=clock)
    write, left = os.write, [3]

    def full(descriptor, data):
        if not left[0]:
            raise OSError(28, "No space left on device")
        written = write(descriptor, bytes(data[: left[0]]))
        left[0] -= written
        return written

    monkeypatch.setattr(rotating_files.os, "write", full)
    with pytest.raises(OSError, match="No space"):
        files.write(b"torn\n")
    monkeypatch.undo()
    files.write(b"whole\n")
    assert contents(tmp_path) == [b"tor", b"whole\n"]
