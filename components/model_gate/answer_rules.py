"""Checks that the candidate answers every row of the eval split with a number. Pure.

Most metrics do not show it: an answer that is NaN is left out of a mean error, and is no "yes" for an
accuracy. The serving check queries a few hundred rows only.
"""

from collections.abc import Mapping

from slipway.components.model_gate.verdict import OVERALL, Check


def answer_checks(not_finite: Mapping[str, int], rows: float) -> list[Check]:
    """Return a failed check for each output with answers that are NaN or infinite.

    Args:
        not_finite: by output, the number of rows with such an answer; the only output has the name "".
        rows: rows of the eval split.
    """
    return [
        Check(
            metric=f"output {output}" if output else "model",
            slice=OVERALL,
            required="a number for every row",
            got=None,
            baseline=None,
            passed=False,
            found=f"answers NaN or infinity to {many:,} of {rows:,.0f} rows",
            note="check what the model divides by or takes the logarithm of",
        )
        for output, many in sorted(not_finite.items())
        if many
    ]
