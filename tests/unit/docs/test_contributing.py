"""The diffs of the page for contributors fit the code: their context stands in the files that they name."""

import re

import pytest


@pytest.fixture(scope="module")
def hunks(project):
    """The file of each hunk of each diff, and the lines that it expects there."""
    page = (project / "docs/contributing.md").read_text(encoding="utf-8")
    found = []
    for diff in re.findall(r"```diff\n(.*?)```", page, re.DOTALL):
        for old, new, text in re.findall(
            r"--- (\S+)\n\+\+\+ b/(\S+)\n(.*?)(?=^--- |\Z)", diff, re.DOTALL | re.M
        ):
            for hunk in re.split(r"^@@.*@@\n", text, flags=re.M)[1:]:
                lines = [line[1:] for line in hunk.splitlines() if not line.startswith("+")]
                found.append((new, None if old == "/dev/null" else "\n".join(lines)))
    return found


def test_each_diff_fits_the_file_that_it_names(project, hunks):
    assert len(hunks) >= 20
    wrong = [
        name
        for name, expected in hunks
        if (
            (project / name).exists()
            if expected is None
            else expected not in (project / name).read_text(encoding="utf-8")
        )
    ]
    assert wrong == [], "docs/contributing.md: bring the diff of these up to date"
