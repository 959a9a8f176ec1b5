"""CHANGELOG.md is read in minutes: an entry is one short line in a section, and stands once."""

import pytest

LONGEST = 200  # letters


@pytest.fixture(scope="module")
def lines(project):
    """The lines below the first heading of a version, without the empty ones."""
    text = (project / "CHANGELOG.md").read_text(encoding="utf-8")
    found = [line for line in text.partition("\n## ")[2].splitlines()[1:] if line]
    assert len(found) > 100
    return found


def test_each_entry_is_one_line_of_at_most_200_letters(lines):
    wrong = [line for line in lines if not line.startswith(("- ", "#")) or len(line) > LONGEST]
    assert wrong == [], "CHANGELOG.md: one bullet on one line; the commit tells the rest"


def test_no_entry_stands_twice(lines):
    bullets = [line for line in lines if line.startswith("- ")]
    assert sorted(set(bullets)) == sorted(bullets)
