"""What a process has used, by the kernel's own accounting as far as it keeps one."""

from slipway.components.trainer.resource_usage import _files


def test_what_is_read_and_written_is_counted_where_the_kernel_counts(tmp_path):
    assert _files()["read_bytes"] >= 0
    (tmp_path / "io").write_text("rchar: 12\nread_bytes: 4096\nwrite_bytes: 0\n")
    assert _files(tmp_path / "io") == {"rchar": 12, "read_bytes": 4096, "write_bytes": 0}
    assert _files(tmp_path / "nowhere") == {}
