"""The memory that a process may still take."""

import pytest

from slipway.components.available_memory import available_memory_bytes

OWN = "user.slice/run.scope"


@pytest.fixture
def machine(tmp_path):
    """Writes what Linux tells: 2,000 kB free; of control groups, by path: limit, use and kept files."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal: 999 kB\nMemAvailable: 2000 kB\n")

    def told(own, groups):
        if own is not None:
            (tmp_path / "proc/self/cgroup").write_text(f"1:name=systemd:/elsewhere\n0::{own}\n")
        for path, (limit, used, kept) in groups.items():
            group = tmp_path / "sys/fs/cgroup" / path
            group.mkdir(parents=True, exist_ok=True)
            (group / "memory.max").write_text(f"{limit}\n")
            (group / "memory.current").write_text(f"{used}\n")
            (group / "memory.stat").write_text(f"anon 7\nactive_file 100\ninactive_file {kept}\n")
        return tmp_path

    return told


@pytest.mark.parametrize(
    ("own", "groups", "expected"),
    [
        (None, {}, 2048000),
        ("/", {"": ("max", 2000, 0)}, 2048000),
        ("/", {"": (5000, 2000, 0)}, 3000),
        (None, {"": (5000, 2000, 0)}, 3000),
        ("/", {"": (5000, 4900, 4000)}, 4100),
        (f"/{OWN}", {OWN: (5000, 2000, 500)}, 3500),
        (f"/{OWN}", {"user.slice": (4000, 3000, 0), OWN: (5000, 2000, 0)}, 1000),
        (f"/{OWN}", {"other": (10, 10, 0)}, 2048000),
        ("/docker/of-the-host", {"": (5000, 2000, 0)}, 3000),
        ("/../other", {"": (5000, 2000, 0)}, 3000),
        ("/", {"": (5000, 6000, 0)}, 0),
    ],
)
def test_memory_is_that_of_the_machine_or_of_the_groups_that_limit_the_process(
    machine, own, groups, expected
):
    assert available_memory_bytes(root=machine(own, groups)) == expected


@pytest.mark.parametrize(
    ("own", "group", "limit", "expected"),
    [
        (f"/{OWN}", OWN, 5000, 3500),
        ("/docker/of-the-host", "", 5000, 3500),
        ("/", "", 9223372036854771712, 2048000),  # no limit
    ],
)
def test_groups_of_version_1_count_too(tmp_path, own, group, limit, expected):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemAvailable: 2000 kB\n")
    (tmp_path / "proc/self/cgroup").write_text(
        f"5:cpu,cpuacct:/elsewhere\n4:memory:{own}\n1:name=systemd:/\n"
    )
    folder = tmp_path / "sys/fs/cgroup/memory" / group
    folder.mkdir(parents=True)
    (folder / "memory.limit_in_bytes").write_text(f"{limit}\n")
    (folder / "memory.usage_in_bytes").write_text("2000\n")
    (folder / "memory.stat").write_text("inactive_file 7\ntotal_inactive_file 500\n")
    assert available_memory_bytes(root=tmp_path) == expected
