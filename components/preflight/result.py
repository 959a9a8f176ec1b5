"""The preflight of one workload, whole: as JSON, as text, and whether it stops a run. Pure.

The JSON is the same from `preflight --json`, in `output/preflight/WORKLOAD.json` and in the artifact of the
node; docs/tpu.md explains its keys. `FORMAT` changes where a key gets another meaning or goes.
"""

from dataclasses import dataclass
from typing import Any

from slipway.components.preflight import advice
from slipway.components.preflight.evidence import STOPPING, Finding

FORMAT = 1
WARNING = (
    "Times and costs are estimates that no hardware has confirmed; prices that you did not set are as "
    "others quoted them, not checked: docs/tpu.md."
)


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """The verdicts of all slices that were asked for.

    Attributes:
        made_at: UTC, ISO 8601.
        region: where the slices are to be rented; "": not known.
        training_keys: keys to set beside those of the slice, such as `train.interpreter`.
    """

    workload: str
    verdicts: tuple[advice.SliceVerdict, ...]
    made_at: str
    region: str = ""
    training_keys: tuple[tuple[str, Any], ...] = ()

    @property
    def exit_code(self) -> int:
        """0 where one slice can train, or no TPU's compiler was there to ask; 1 where none can."""
        wrong = [any(each.severity == "error" for each in verdict.findings) for verdict in self.verdicts]
        return 1 if all(wrong) else 0

    @property
    def best(self) -> advice.SliceVerdict | None:
        """The slice to take."""
        return advice.recommended(self.verdicts)

    @property
    def stopping(self) -> tuple[Finding, ...]:
        """The findings that rule a training out: the step does not compile, or does not fit."""
        return tuple(each for verdict in self.verdicts for each in verdict.findings if each.rule in STOPPING)

    def to_json(self) -> dict[str, object]:
        """Plain data."""
        best = self.best
        return {
            "format": FORMAT,
            "workload": self.workload,
            "made_at": self.made_at,
            "estimates": WARNING,
            "prices_of": ", ".join(self._months),
            "slices": [verdict.to_json() for verdict in self.verdicts],
            "recommended": best.question.slice.name if best else None,
            "keys": self._keys(best) if best else {},
            "rent": advice.renting(best, workload=self.workload, region=self.region) if best else {},
        }

    def text(self) -> str:
        """Each slice, the table, the recommendation."""
        lines = [line for verdict in self.verdicts for line in [*advice.slice_lines(verdict), ""]]
        if len(self.verdicts) > 1:
            lines += [*advice.table(self.verdicts), ""]
        best = self.best
        if best is not None:
            name = best.question.slice.name
            keys = " ".join(f"--set {key}={value}" for key, value in self._keys(best).items())
            why = "cheapest at roofline speed of those" if len(self.verdicts) > 1 else "the slice"
            rent = advice.renting(best, workload=self.workload, region=self.region)
            lines += [
                f"take {name}, {why} that can train it: {keys}",
                f"job.yaml for Vertex AI: {rent['job']}",
                f"  {rent['command']}",
            ]
        return "\n".join([*lines, WARNING])

    @property
    def _months(self) -> list[str]:
        """That the prices are of."""
        estimates = [each.estimate for each in self.verdicts if each.estimate]
        return sorted({each.price.month for each in estimates if each.price})

    def _keys(self, best: advice.SliceVerdict) -> dict[str, object]:
        return {**advice.keys_to_set(best), **dict(self.training_keys)}
