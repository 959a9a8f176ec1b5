"""The digest of what an ingest has written."""

import shutil


def test_same_content_has_the_same_digest_anywhere(ingest, write, tmp_path):
    from slipway.components.ingest.digest import combined

    path = write("a\n1\n")
    first = combined(ingest(path).report.digests)
    (tmp_path / "else").mkdir()
    shutil.copy(path, tmp_path / "else/other.csv")
    assert combined(ingest(tmp_path / "else/*.csv").report.digests) == first
    assert combined(ingest(write("a\n2\n")).report.digests) != first
