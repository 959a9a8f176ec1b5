"""The processor, as the kernel tells of it."""

import os

import pytest

from slipway.components.trainer.devices.machine import cpu_has_bfloat16, usable_cores


def told(root, name, text):
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max 100000", 6), ("200000 100000", 2), ("50000 100000", 1), ("900000 100000", 6), ("", 6)],
)
def test_cores_are_those_of_the_affinity_within_the_quota_of_the_container(
    tmp_path, monkeypatch, quota, cores
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)))
    assert usable_cores(root=told(tmp_path, "sys/fs/cgroup/cpu.max", quota)) == cores


@pytest.mark.parametrize(
    ("line", "has"),
    [
        ("flags\t\t: fpu avx512f avx512_bf16", True),
        ("flags\t\t: fpu amx_bf16", True),
        ("Features\t: fp asimd bf16", True),
        ("flags\t\t: fpu avx2 avx512f", False),
        ("model name\t: avx512_bf16", False),
    ],
)
def test_bfloat16_is_read_from_the_flags_of_the_processor(tmp_path, line, has):
    text = f"processor\t: 0\n{line}\n"
    assert cpu_has_bfloat16(root=told(tmp_path, "proc/cpuinfo", text)) == has


def test_unknown_processor_has_no_bfloat16(tmp_path):
    assert not cpu_has_bfloat16(root=tmp_path)
