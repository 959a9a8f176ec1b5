"""The memory that a process may still take."""

import pytest

from slipway.components.available_memory import available_memory_bytes


def machine(root, *, available_kb, limit=None, used=0):
    (root / "proc").mkdir()
    (root / "proc/meminfo").write_text(f"MemTotal: 999 kB\nMemAvailable: {available_kb} kB\n")
    if limit is not None:
        (root / "sys/fs/cgroup").mkdir(parents=True)
        (root / "sys/fs/cgroup/memory.max").write_text(f"{limit}\n")
        (root / "sys/fs/cgroup/memory.current").write_text(f"{used}\n")
    return root


@pytest.mark.parametrize(
    ("limits", "expected"),
    [({}, 2048000), ({"limit": "max"}, 2048000), ({"limit": 5000, "used": 2000}, 3000)],
)
def test_memory_is_that_of_the_machine_or_of_the_container(tmp_path, limits, expected):
    assert available_memory_bytes(root=machine(tmp_path, available_kb=2000, **limits)) == expected
