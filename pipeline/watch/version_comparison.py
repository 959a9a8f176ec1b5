"""Compares two versions on the same logged rows: how far answers differ, and which is better. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from slipway.components.counted_words import agreeing, counted
from slipway.components.data_profile.columns import Floats
from slipway.components.saved_model.class_names import class_codes
from slipway.pipeline.exit_codes import DONE, GATE_STOPPED
from slipway.pipeline.watch.log_folder import left_out_lines
from slipway.pipeline.watch.paired_metrics import CONFIDENCE, PairedMetric, Verdict

QUANTILES = (0.5, 0.9, 0.99, 1.0)
MOST_ROWS = 5


@dataclass(frozen=True)
class Difference:
    """The difference between two versions' answers to the same rows.

    Attributes:
        rows: the number of rows that both versions have answered.
        not_finite: the number of these rows for which one version's prediction is infinite or NaN; they are
            left out of everything below.
        otherwise: the number of rows with different most probable classes; None if answers are not classes.
        mean: the mean absolute difference; of several outputs, the largest difference counts.
        quantiles: the quantiles of the same difference, at `QUANTILES`.
        most: the numbers of the rows that differ most, largest difference first.
    """

    rows: int
    not_finite: int
    otherwise: int | None
    mean: float
    quantiles: tuple[float, ...]
    most: tuple[int, ...]

    @property
    def share(self) -> float | None:
        """The share of finite rows with different most probable classes; None if answers are not classes."""
        finite = self.rows - self.not_finite
        return self.otherwise / finite if self.otherwise is not None and finite else None


def difference_of(champion: Floats, challenger: Floats, *, are_classes: bool) -> Difference:
    """Return how far the answers to the same rows differ.

    Args:
        champion: the champion's predictions, [rows, outputs]; at least one row has finite ones of both.
        challenger: the challenger's predictions, of the same shape.
        are_classes: whether each answer holds the probabilities of classes, or that of the second of two.
    """
    finite = np.isfinite(champion).all(1) & np.isfinite(challenger).all(1)
    ours, theirs = challenger[finite], champion[finite]
    apart = np.abs(ours - theirs).max(1)
    quantiles = np.quantile(apart, QUANTILES).tolist()
    order: npt.NDArray[np.intp] = np.argsort(-apart, kind="stable")[:MOST_ROWS]
    most = np.flatnonzero(finite)[order[apart[order] > 0]]
    return Difference(
        rows=len(champion),
        not_finite=int((~finite).sum()),
        otherwise=int((class_codes(ours) != class_codes(theirs)).sum()) if are_classes else None,
        mean=float(apart.mean()),
        quantiles=tuple(quantiles),
        most=tuple(most.tolist()),
    )


@dataclass(frozen=True)
class DifferingRow:
    """A logged row with both answers; `row` counts from 0, `line` from 1 and is set for JSON Lines only."""

    file: str
    line: int | None
    row: int
    champion: Sequence[float]
    challenger: Sequence[float]

    @property
    def text(self) -> str:
        """The row on one line."""
        place = f"line {self.line:,}" if self.line else f"row {self.row:,}"
        return f"  {self.file} {place}: {_shown(self.champion)}, then {_shown(self.challenger)}"


@dataclass(frozen=True)
class Compared:
    """The comparison of a champion and a challenger.

    Attributes:
        left_out_counts: counts, by reason, of what was left out of the logs or is incomplete.
        metrics: the metrics of rows with late labels; empty if no labels were given.
        labelled: the number of these rows.
    """

    workload: str
    champion: int
    challenger: int
    difference: Difference
    most: tuple[DifferingRow, ...]
    left_out_counts: Mapping[str, int]
    metrics: tuple[PairedMetric, ...] = ()
    labelled: int = 0

    @property
    def verdict(self) -> Verdict | None:
        """The judgement on the challenger: "worse" if any metric is worse; None without labels."""
        if not self.metrics:
            return None
        found = {each.verdict for each in self.metrics}
        return "worse" if "worse" in found else "better" if "better" in found else "no difference shown"

    @property
    def exit_code(self) -> int:
        """The exit code of a run that a gate stopped if the challenger is worse; otherwise 0."""
        return GATE_STOPPED if self.verdict == "worse" else DONE

    @property
    def sentence(self) -> str:
        """The outcome in one sentence, and a second one about metrics if there are labels."""
        return " ".join(filter(None, [self._of_answers, self._of_labels]))

    @property
    def _of_answers(self) -> str:
        found = self.difference
        median, _, nearly_all, largest = found.quantiles
        asked = f"{counted(found.rows, 'logged row')} of {self.workload}"
        decided = ""
        if found.otherwise is not None and found.share is not None:
            percent = float(f"{100 * found.share:.2g}")  # two digits, but never as 1e+02
            decided = f"decides otherwise in {found.otherwise:,} ({percent:g} %), and "
        unsound = ""
        if found.not_finite:
            verb = agreeing(found.not_finite, "have")
            unsound = f"; {found.not_finite:,} of them {verb} an answer that is no finite number"
        return (
            f"Of {asked}, version {self.challenger} {decided}answers {found.mean:.4g} apart from version "
            f"{self.champion} on average: {median:.4g} or less in half of them, {nearly_all:.4g} in 99 of "
            f"100, {largest:.4g} at most{unsound}."
        )

    @property
    def _of_labels(self) -> str:
        if not self.metrics:
            return ""
        words: Mapping[Verdict, str] = {
            "worse": "is worse",
            "better": "is better",
            "no difference shown": "shows no difference",
        }
        parts = []
        for verdict, word in words.items():
            if told := [each.text for each in self.metrics if each.verdict == verdict]:
                parts.append(f"{word}: {', '.join(told)}")
        return f"In {counted(self.labelled, 'row')} with a label the challenger {'; '.join(parts)}."

    def text(self) -> str:
        """Return the sentences, the rows that differ most, and what was left out."""
        most = ["The rows that differ most:", *(row.text for row in self.most)] if self.most else []
        return "\n".join([self.sentence, *most, *left_out_lines(self.left_out_counts)])

    def to_json(self) -> dict[str, object]:
        """Return the comparison as plain data."""
        found = self.difference
        return {
            "workload": self.workload,
            "champion": self.champion,
            "challenger": self.challenger,
            "text": self.sentence,
            "exit_code": self.exit_code,
            "rows": found.rows,
            "not_finite": found.not_finite,
            "otherwise": found.otherwise,
            "mean_absolute_difference": found.mean,
            "quantiles": dict(zip(map(str, QUANTILES), found.quantiles, strict=True)),
            "most": [asdict(row) for row in self.most],
            "told": dict(self.left_out_counts),
            "verdict": self.verdict,
            "labelled": self.labelled,
            "confidence": CONFIDENCE,
            "metrics": [each.to_json() for each in self.metrics],
        }


def _shown(answer: Sequence[float]) -> str:
    shown = ", ".join(f"{value:.4g}" for value in answer[:MOST_ROWS])
    return f"{shown}, ..." if len(answer) > MOST_ROWS else shown
