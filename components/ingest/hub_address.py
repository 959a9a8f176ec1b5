"""Reads the addresses of data sets on the Hugging Face Hub, hf://datasets/OWNER/NAME@REVISION/PATH. Pure.

They are the Hub's own form: a slash in a revision is written as %2F, except in refs/convert/NAME and
refs/pr/NUMBER.
"""

import re
from dataclasses import dataclass, replace
from typing import Self
from urllib.parse import quote, unquote

from slipway.components.errors import ComponentError

MAIN = "main"
"""The revision of an address that names none."""
FORM = "hf://datasets/OWNER/NAME@REVISION/PATH"
_WITH_SLASHES = r"refs/(?:convert/[\w.-]+|pr/\d+)"
_NAME = r"[A-Za-z0-9_][\w.-]{0,95}"
_ADDRESS = re.compile(
    rf"hf://datasets/(?P<repository>{_NAME}/{_NAME})"
    rf"(?:@(?P<revision>{_WITH_SLASHES}(?=/|$)|[^/@\s*?\[\]\\{{}}]+))?(?:/(?P<path>.*))?",
    re.ASCII,
)
COMMIT = re.compile("[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set on the Hub at a revision.

    Attributes:
        repository: OWNER/NAME.
        revision: a branch, a tag or the id of a commit.
    """

    repository: str
    revision: str = MAIN

    @property
    def is_pinned(self) -> bool:
        """Whether the revision is the id of a commit, at which nothing ever changes."""
        return COMMIT.fullmatch(self.revision) is not None

    @property
    def address(self) -> str:
        """The address, without a slash at its end."""
        has_slashes = re.fullmatch(_WITH_SLASHES, self.revision, re.ASCII)
        return f"{self.name}@{self.revision if has_slashes else quote(self.revision, safe='')}"

    @property
    def name(self) -> str:
        """The address without the revision."""
        return f"hf://datasets/{self.repository}"

    def at(self, commit: str) -> Self:
        """Return the same data set at a commit."""
        return replace(self, revision=commit)


def without_revision(address: str) -> str:
    """Return an address without its revision, the same for the same file of all commits.

    Raises:
        ComponentError: as `data_set_and_path`.
    """
    data_set, path = data_set_and_path(address)
    return f"{data_set.name}/{path}" if path else data_set.name


def data_set_and_path(address: str) -> tuple[DataSet, str]:
    """Return the data set of an address, and the path or pattern in it, which may be empty.

    Raises:
        ComponentError: the address has another form.
    """
    found = _ADDRESS.fullmatch(address)
    if found is None:
        raise ComponentError(
            f"{address} must be {FORM}",
            hint="for example hf://datasets/OWNER/NAME/data/train-*.parquet; a slash in a branch's name is "
            "written %2F",
        )
    return DataSet(found["repository"], unquote(found["revision"] or MAIN)), found["path"] or ""
