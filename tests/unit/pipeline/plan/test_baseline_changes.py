"""What users have changed of a baseline, as it is read back."""

import pytest

from slipway.pipeline.errors import UsageError
from slipway.pipeline.plan.baseline_changes import retired_blessings

GOOD = '{"at": "2026-01-01", "action": "clear", "run_id": "", "reason": "", "retired": ["/a/1"]}'


@pytest.fixture
def changes(tmp_path):
    """The file of the changes; to be written."""
    path = tmp_path / "baselines" / "taxi.jsonl"
    path.parent.mkdir()
    return path


def test_last_change_says_which_blessings_are_retired(changes, tmp_path):
    assert retired_blessings(tmp_path, "taxi") == frozenset()
    changes.write_text(f"{GOOD}\n{GOOD.replace('/a/1', '/a/2')}\n", encoding="utf-8")
    assert retired_blessings(tmp_path, "taxi") == {"/a/2"}


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (GOOD[:-20], "it is not complete JSON"),
        ("[]", "the whole is \\[\\], where a mapping belongs"),
        (GOOD.replace('["/a/1"]', "7"), "retired is 7, where a list belongs"),
    ],
)
def test_damaged_change_is_refused_with_file_and_line(changes, tmp_path, line, why):
    changes.write_text(f"{GOOD}\n{line}\n", encoding="utf-8")
    with pytest.raises(UsageError, match=rf"taxi.jsonl, line 2 cannot be read: {why}"):
        retired_blessings(tmp_path, "taxi")
