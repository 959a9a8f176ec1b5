"""The output folder and its store: taken, damaged, locked, full."""

import os
import signal
import sqlite3
import subprocess

import pytest

from slipway.pipeline.runs import lock

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("warm_engine")]


def test_a_second_engine_on_the_folder_is_refused(toy):
    engine = toy.start("run", "--pipeline", "toy_pipeline:hang")
    toy.begins("hangs")
    second = toy.run("one")
    assert second.returncode == 2
    assert f"in use by process {engine.pid}" in second.stderr
    assert "--output" in second.stderr
    engine.send_signal(signal.SIGTERM)
    engine.communicate()
    assert engine.returncode == 130, "SIGTERM ends it as Ctrl-C does"
    assert toy.record().state == "interrupted"


def test_a_damaged_store_is_refused_with_the_way_out(toy):
    toy.output.mkdir()
    (toy.output / "metadata.db").write_bytes(b"no database" * 1000)
    refused = toy.run("one")
    assert refused.returncode == 2
    assert "metadata.db is damaged: file is not a database" in refused.stderr
    assert "mv " in refused.stderr


def test_a_store_that_is_locked_for_too_long_is_reported(toy, monkeypatch):
    monkeypatch.setattr(lock, "_STORE_WAIT_S", 1.0)
    toy.output.mkdir()
    with sqlite3.connect(toy.output / "metadata.db") as writer:
        writer.execute("CREATE TABLE t (x)")
        writer.execute("BEGIN EXCLUSIVE")
        refused = toy.run("one")
        writer.rollback()
    writer.close()
    assert refused.returncode == 2
    assert "metadata.db cannot be used: database is locked (waited 1 s)" in refused.stderr


@pytest.fixture
def small_disk(toy):
    """Puts the toys' artifacts on a disk of two megabytes."""
    disk = toy.folder / "artifacts"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_node_that_fills_the_disk_is_reported_and_can_be_gone_on_with(toy, small_disk):
    failed = toy.run("fill")
    assert failed.returncode == 1
    assert "No space left on device" in failed.stderr
    assert "make room on the disk" in failed.stderr
    toy.get_well()
    assert toy.as_printed(failed.stderr).returncode == 0
    assert toy.lines("pushed") == ["good"]


@pytest.mark.parametrize("left", [300_000, 150_000])
def test_a_disk_without_room_for_the_metadata_store_is_reported(toy, small_disk, left):
    toy.output = small_disk / "out"
    filler = small_disk / "filler"
    # The store takes more than that: it is full at the first node, or before it.
    filler.write_bytes(b"x" * ((2 << 20) - left))
    failed = toy.run("one")
    assert failed.returncode == 1
    assert "database or disk is full" in failed.stderr
    assert "make room on the disk" in failed.stderr
    assert "Traceback" not in failed.stderr
    filler.unlink()
    assert toy.as_printed(failed.stderr).returncode == 0


def test_a_disk_that_also_holds_the_record_is_reported(toy, small_disk):
    toy.output = small_disk / "out"
    failed = toy.run("fill")
    assert failed.returncode == 1
    assert "No space left on device" in failed.stderr
    assert "Traceback" not in failed.stderr
    assert toy.left() == []
