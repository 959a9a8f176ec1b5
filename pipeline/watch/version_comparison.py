"""Two versions on the same logged rows: how far the answers differ and, by labels, which is better. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from slipway.components.counted_words import agreeing, counted
from slipway.components.data_profile.columns import Floats
from slipway.components.saved_model.class_names import class_codes
from slipway.pipeline.exit_codes import DONE, GATE_STOPPED
from slipway.pipeline.watch.log_folder import told_text
from slipway.pipeline.watch.paired_metrics import CONFIDENCE, PairedMetric, Verdict

QUANTILES = (0.5, 0.9, 0.99, 1.0)
MOST_ROWS = 5


@dataclass(frozen=True)
class Difference:
    """How far the answers to the same rows differ.

    Attributes:
        rows: that both have answered.
        not_finite: rows of them with an infinite answer, or one that is no number, of either version; they
            are left out of all that follows.
        otherwise: rows in which another class is the most probable one; None where answers are no classes.
        mean: of the absolute differences; of an answer of several numbers the largest difference counts.
        quantiles: of the same, at `QUANTILES`.
        most: the numbers of the rows that differ most, the largest difference first.
    """

    rows: int
    not_finite: int
    otherwise: int | None
    mean: float
    quantiles: tuple[float, ...]
    most: tuple[int, ...]

    @property
    def share(self) -> float | None:
        """Of rows in which another class is the most probable one."""
        finite = self.rows - self.not_finite
        return self.otherwise / finite if self.otherwise is not None and finite else None


def difference_of(champion: Floats, challenger: Floats, *, are_classes: bool) -> Difference:
    """How far the answers to the same rows differ.

    Args:
        champion: [rows, outputs], at least one row with finite answers.
        challenger: the same of the other version.
        are_classes: whether each answer is probabilities of classes, or one of the second of two.
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
    """A logged row and what each version answers; `line` counts from 1, in JSON Lines only; `row` from 0."""

    file: str
    line: int | None
    row: int
    champion: Sequence[float]
    challenger: Sequence[float]

    @property
    def text(self) -> str:
        """In one line."""
        place = f"line {self.line:,}" if self.line else f"row {self.row:,}"
        return f"  {self.file} {place}: {_shown(self.champion)}, then {_shown(self.challenger)}"


@dataclass(frozen=True)
class Compared:
    """The comparison of a champion and a challenger.

    Attributes:
        most: the rows that differ most.
        told: what of the logs is not compared, or lacks something: how many of what.
        metrics: of rows whose labels came later; empty where none were given.
        labelled: how many rows those are.
    """

    workload: str
    champion: int
    challenger: int
    difference: Difference
    most: tuple[DifferingRow, ...]
    told: Mapping[str, int]
    metrics: tuple[PairedMetric, ...] = ()
    labelled: int = 0

    @property
    def verdict(self) -> Verdict | None:
        """What the challenger is by the labels; worse if any metric is. None without labels."""
        if not self.metrics:
            return None
        found = {each.verdict for each in self.metrics}
        return "worse" if "worse" in found else "better" if "better" in found else "no difference shown"

    @property
    def exit_code(self) -> int:
        """As of a run that a gate has stopped, where the challenger is worse."""
        return GATE_STOPPED if self.verdict == "worse" else DONE

    @property
    def sentence(self) -> str:
        """The answer in one sentence, and another one of metrics."""
        return " ".join(filter(None, [self._of_answers, self._of_labels]))

    @property
    def _of_answers(self) -> str:
        found = self.difference
        median, _, nearly_all, largest = found.quantiles
        asked = f"{counted(found.rows, 'logged row')} of {self.workload}"
        decided = ""
        if found.otherwise is not None and found.share is not None:
            decided = f"decides otherwise in {found.otherwise:,} ({100 * found.share:.2g} %), and "
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
        """The sentences, the rows that differ most, and what was left out."""
        most = ["The rows that differ most:", *(row.text for row in self.most)] if self.most else []
        return "\n".join([self.sentence, *most, *told_text(self.told)])

    def to_json(self) -> dict[str, object]:
        """Plain data."""
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
            "told": dict(self.told),
            "verdict": self.verdict,
            "labelled": self.labelled,
            "confidence": CONFIDENCE,
            "metrics": [each.to_json() for each in self.metrics],
        }


def _shown(answer: Sequence[float]) -> str:
    shown = ", ".join(f"{value:.4g}" for value in answer[:MOST_ROWS])
    return f"{shown}, ..." if len(answer) > MOST_ROWS else shown
