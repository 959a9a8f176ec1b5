import os
import shutil
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


def test_after_the_clock_was_set_back_a_file_begins(tmp_path, clock):
    files = RotatingFiles(tmp_path, most_bytes=800, clock=clock)
    files.write(b"1\n")
    clock.now -= 10 * 86_400
    files.write(b"2\n")
    assert sorted(contents(tmp_path)) == [b"1\n", b"2\n"]


def test_file_that_somebody_removes_is_followed_by_another(tmp_path, clock):
    files = RotatingFiles(tmp_path / "log", most_bytes=800, clock=clock)
    files.write(b"1\n")
    shutil.rmtree(tmp_path / "log")
    files.write(b"2\n")
    files.write(b"3\n")
    assert contents(tmp_path / "log") == [b"2\n3\n"]


def test_names_that_are_taken_are_passed_over(tmp_path):
    one, two = (RotatingFiles(tmp_path, most_bytes=800, clock=lambda: 1_800_000_000.0) for _ in range(2))
    one.write(b"1\n")
    two.write(b"2\n")
    assert contents(tmp_path) == [b"1\n", b"2\n"]


def test_link_counts_as_itself_and_what_it_leads_to_stays(tmp_path, clock):
    other = tmp_path / "other"
    other.write_bytes(b"x" * 10_000)
    log = tmp_path / "log"
    log.mkdir()
    (log / "requests-1.jsonl").symlink_to(other)
    RotatingFiles(log, most_bytes=800, clock=clock).write(b"1\n")
    assert (log / "requests-1.jsonl").is_symlink()
    assert other.stat().st_size == 10_000


def test_two_processes_write_files_of_their_own(tmp_path, clock):
    one, two = (RotatingFiles(tmp_path, most_bytes=800, clock=clock) for _ in range(2))
    one.write(b"1\n")
    two.write(b"2\n")
    one.write(b"3\n")
    assert contents(tmp_path) == [b"1\n3\n", b"2\n"]


@pytest.fixture
def full_after(monkeypatch):
    """Makes the disk full after some more bytes."""
    write = os.write

    def fill(left):
        def full(descriptor, data):
            nonlocal left
            if not left:
                raise OSError(28, "No space left on device")
            written = write(descriptor, bytes(data[:left]))
            left -= written
            return written

        monkeypatch.setattr(rotating_files.os, "write", full)

    return fill


def test_a_full_disk_leaves_whole_lines_only(tmp_path, clock, full_after, monkeypatch):
    files = RotatingFiles(tmp_path, most_bytes=800, clock=clock)
    files.write(b"before\n")
    full_after(3)
    with pytest.raises(OSError, match="No space"):
        files.write(b"torn\n")
    monkeypatch.undo()
    files.write(b"whole\n")
    assert contents(tmp_path) == [b"before\n", b"whole\n"]


def test_a_full_disk_is_not_filled_with_empty_files(tmp_path, clock, full_after):
    files = RotatingFiles(tmp_path, most_bytes=800, clock=clock)
    full_after(0)
    for _ in range(10):
        with pytest.raises(OSError, match="No space"):
            files.write(b"line\n")
    assert contents(tmp_path) == []


def test_files_of_another_folder_are_moved_here_and_the_oldest_go(tmp_path, clock):
    files = RotatingFiles(tmp_path / "log", most_bytes=80, clock=clock)
    for number in range(16):
        files.write(f"{number:04}\n".encode())
    others = RotatingFiles(tmp_path / "log/.others", most_bytes=80, clock=clock)
    for number in range(16, 20):
        others.write(f"{number:04}\n".encode())
    before = set((tmp_path / "log").glob(PATTERN))
    files.adopt(sorted((tmp_path / "log/.others").glob(PATTERN)))
    now = b"".join(contents(tmp_path / "log")).split()
    assert now == [f"{number:04}".encode() for number in range(4, 20)]
    assert len(set((tmp_path / "log").glob(PATTERN)) - before) == 2
    assert contents(tmp_path / "log/.others") == []


def test_no_file_is_replaced_by_one_of_another_folder(tmp_path, clock):
    (tmp_path / "other").mkdir()
    name = "requests-20260101-000000-000000-1.jsonl"
    for folder, text in ((tmp_path, "here\n"), (tmp_path / "other", "there\n")):
        (folder / name).write_text(text, encoding="utf-8")
    RotatingFiles(tmp_path, most_bytes=800, clock=clock).adopt([tmp_path / "other" / name])
    assert sorted(contents(tmp_path)) == [b"here\n", b"there\n"]


def test_files_whose_names_are_all_taken_are_refused_with_the_remedy(tmp_path, clock, monkeypatch):
    monkeypatch.setattr(rotating_files, "_MOST_NAMES", 3)
    (tmp_path / "other").mkdir()
    stem = "requests-20260101-000000-000000-1"
    for name in (f"{stem}.jsonl", f"{stem}-1.jsonl", f"{stem}-2.jsonl", f"other/{stem}.jsonl"):
        (tmp_path / name).touch()
    with pytest.raises(FileExistsError, match=rf"all 3 names of .* to another folder: .*{stem}\.jsonl"):
        RotatingFiles(tmp_path, most_bytes=800, clock=clock).adopt([tmp_path / "other" / f"{stem}.jsonl"])
