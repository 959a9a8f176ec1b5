"""Copies the output folder of a run, so that a test can add to it while others add to their own."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

# Where records stand of what a run has made, by its absolute path. The results themselves stay as they are:
# what is in the cache is known by the digest of its content.
_RECORDS = ("cache", "runs")


def copy_run(made: Path, place: Path) -> Path:
    """Copy an output folder to a new place, where the engine finds every result in its cache.

    The Pusher is the exception: its cache key holds the destination, which lies in the output folder.

    Returns:
        The place.
    """
    shutil.copytree(made, place, symlinks=True)
    old, new = str(made), str(place)
    for folder in _RECORDS:
        for file in (place / folder).rglob("*"):
            if file.is_file() and not file.is_symlink():
                content = file.read_bytes()
                if old.encode() in content:
                    file.write_bytes(content.replace(old.encode(), new.encode()))
    with closing(sqlite3.connect(place / "metadata.db")) as store, store:
        for table, column in (
            ("Artifact", "uri"),
            ("ArtifactProperty", "string_value"),
            ("ExecutionProperty", "string_value"),
        ):
            store.execute(f"UPDATE {table} SET {column} = replace({column}, ?, ?)", (old, new))  # noqa: S608
    return place
