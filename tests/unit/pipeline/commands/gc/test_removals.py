"""What gc removes, in words."""

import pytest

from slipway.pipeline.commands.gc.removals import Cleanup, Removal


@pytest.mark.parametrize(
    ("size_bytes", "text"), [(1, "1 B"), (999, "999 B"), (4_100_000, "4.1 MB"), (2.5e12, "2.5 TB")]
)
def test_sizes_have_units(tmp_path, size_bytes, text):
    cleanup = Cleanup(
        tmp_path, (Removal("run", tmp_path / "runs" / "r", size_bytes),), {"a": "b"}, is_done=True
    )
    assert cleanup.text() == f"Removed 1 run: {text}. Kept: 1 run."
