"""The page of limits says what the server does."""

import pytest

from slipway.components.serving import limits


@pytest.mark.parametrize(
    "row",
    [
        f"| a request | {limits.MAX_BODY_BYTES // 2**20} MiB |",
        f"wait for the next on a connection | {limits.PATIENCE_S:g} s |",
        f"| connections at once | {limits.AT_ONCE} |",
        f"| rows of a request | {limits.MAX_ROWS:,};",
        f"| rows that the model answers in one call | {limits.ROWS_AT_ONCE} |",
        f"looked at after each of these calls | {limits.ANSWER_S:g} s |",
        f"padded to the longest | {limits.MAX_LIST_CELLS:,} |",
        f"for a GIF, of all frames | {limits.MAX_PIXELS:,} |",
        f"such as the segments of a JPEG | {limits.MAX_PARTS:,} |",
        f"as in a tf.Example | {limits.MAX_IMAGES} |",
        f"| dimensions of a text input | {limits.MAX_DIMENSIONS} |",
        f"quoted in an error | {limits.MAX_QUOTED} characters |",
    ],
)
def test_page_of_limits_names_each(project, row):
    assert row in (project / "docs/limits.md").read_text(encoding="utf-8")


def test_a_model_answers_two_requests_at_once_on_a_single_core_too():
    assert limits.CALLS_AT_ONCE >= 2
