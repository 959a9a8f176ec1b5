"""What make_data takes of the package's archive: each piece with good or bad, in its order."""

import io
import tarfile

from workloads.reviews.make_data import reviews

INNER = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
TABLE = "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt"


def packed(name: str, content: bytes) -> bytes:
    """An archive with one file."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return whole.getvalue()


def test_a_piece_above_zero_is_good(tmp_path):
    table = "1_1\t2.5\tA joy\n1_2\t0\tneither\n1_3\t-0.6\tto\u00f6 tepid\n"
    archive = tmp_path / "package.tar.gz"
    archive.write_bytes(packed(INNER, packed(TABLE, table.encode())))
    assert list(reviews(archive)) == [
        {"label": 1, "text": "A joy"},
        {"label": 0, "text": "neither"},
        {"label": 0, "text": "to\u00f6 tepid"},
    ]
