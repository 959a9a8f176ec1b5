"""Writes reviews.jsonl.bz2 for the profile `full`: snippets of film reviews, labelled positive or negative.

    pip download --no-deps --no-binary :all: vaderSentiment==3.3.2
    python -m workloads.reviews.make_data vaderSentiment-3.3.2.tar.gz

The file is not in the repository, since its texts belong to others. The package's source archive holds 10,605
snippets of reviews from Rotten Tomatoes, each with the mean of the ratings of at least fifteen people, from
-4 (most negative) to 4. A line of the file has the columns of TFX's example, {"label": ..., "text": ...}; the
lines are in the package's order, and none is left out. The label is 1 if the mean is above 0, otherwise 0.

The data: "VADER: A Parsimonious Rule-based Model for Sentiment Analysis of Social Media Text", C.J. Hutto and
E.E. Gilbert, ICWSM 2014, MIT licence. B. Pang and L. Lee collected the texts (ACL 2005).
"""

import bz2
import io
import json
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

REVIEWS_FILE = Path(__file__).with_name("reviews.jsonl.bz2")

_INNER = "vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz"
_TABLE = "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt"


def reviews(archive: Path) -> Iterator[dict[str, object]]:
    """Yield the snippets in the package's source archive, in order, labelled 1 (positive) or 0 (negative)."""
    table = _member(io.BytesIO(_member(io.BytesIO(archive.read_bytes()), _INNER)), _TABLE)
    for line in table.decode("utf-8").splitlines():
        _, rating, text = line.split("\t")
        yield {"label": int(float(rating) > 0), "text": text}


def _member(archive: io.BytesIO, name: str) -> bytes:
    with tarfile.open(fileobj=archive, mode="r:gz") as files:
        file = files.extractfile(name)
        assert file is not None, f"{name} is no file"  # noqa: S101  (a script for whoever makes the data)
        return file.read()


if __name__ == "__main__":
    lines = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in reviews(Path(sys.argv[1])))
    REVIEWS_FILE.write_bytes(bz2.compress(lines.encode()))
