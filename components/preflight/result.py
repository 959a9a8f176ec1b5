"""The result of a workload's preflight: as JSON, as text, and whether it stops a run. Pure.

The JSON is the same in `preflight --json`, in `output/preflight/WORKLOAD.json` and in the artifact of the
node; docs/tpu.md explains its keys. `FORMAT` changes if a key is removed or its meaning changes.
"""

from dataclasses import dataclass
from typing import Any

from slipway.components.preflight import advice, scaling
from slipway.components.preflight.finding import STOPPING, Finding

FORMAT = 1
WARNING = (
    "Times and costs are estimates that no hardware has confirmed; prices that you did not set are as "
    "others quoted them, not checked: docs/tpu.md."
)


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """The verdicts on all requested slices.

    Attributes:
        made_at: the time of the preflight: UTC, ISO 8601.
        region: the region where the slices are to be rented; "" if unknown.
        training_keys: keys to set in addition to those of the slice, such as `train.interpreter`.
    """

    workload: str
    verdicts: tuple[advice.SliceVerdict, ...]
    made_at: str
    region: str = ""
    training_keys: tuple[tuple[str, Any], ...] = ()

    @property
    def exit_code(self) -> int:
        """1 if every slice has an error; else 0, even if no slice was compiled for a TPU."""
        wrong = [any(each.severity == "error" for each in verdict.findings) for verdict in self.verdicts]
        return 1 if all(wrong) else 0

    @property
    def best(self) -> advice.SliceVerdict | None:
        """The verdict on the recommended slice; None if no slice can train."""
        return advice.recommended(self.verdicts)

    @property
    def stopping(self) -> tuple[Finding, ...]:
        """The findings that mean that no training is possible: the step does not compile, or does not fit.

        A step of hyperparameters that are searched may fit with others.
        """
        return tuple(
            each
            for verdict in self.verdicts
            for rules in [{found.rule for found in verdict.findings}]
            for each in verdict.findings
            if each.rule in STOPPING and not (each.rule == "does_not_fit" and "search" in rules)
        )

    def to_json(self) -> dict[str, object]:
        """Return plain data."""
        best = self.best
        return {
            "format": FORMAT,
            "workload": self.workload,
            "made_at": self.made_at,
            "estimates": WARNING,
            "prices_of": ", ".join(self._months),
            "slices": [verdict.to_json() for verdict in self.verdicts],
            "scaling": scaling.to_json(self.verdicts),
            "recommended": best.question.slice.name if best else None,
            "keys": self._keys(best) if best else {},
            "rent": advice.renting(best, workload=self.workload, region=self.region) if best else {},
        }

    def text(self) -> str:
        """Return the text for people: each slice, the table, the recommendation."""
        lines = [line for verdict in self.verdicts for line in [*advice.slice_lines(verdict), ""]]
        if len(self.verdicts) > 1:
            lines += [*advice.table(self.verdicts), ""]
        for generation, each in scaling.generations(self.verdicts).items():
            lines += [*scaling.scaling_lines(generation, each), ""]
        best = self.best
        if best is not None and not best.question.slice.machine:
            lines.append(
                f"take {best.question.slice.name}, which can train it, from GKE or Cloud TPU: "
                "Vertex AI, on which trainings run here, does not rent it, so no keys select it"
            )
        elif best is not None:
            name = best.question.slice.name
            keys = " ".join(f"--set {key}={value}" for key, value in self._keys(best).items())
            rent = advice.renting(best, workload=self.workload, region=self.region)
            lines += [
                f"take {name}, {self._why(best)} that can train it: {keys}",
                f"job.yaml for Vertex AI: {rent['job']}",
                f"  {rent['command']}",
            ]
        return "\n".join([*lines, WARNING])

    def _why(self, best: advice.SliceVerdict) -> str:
        """Say what the recommended slice is, of those that can be rented."""
        priced = [
            each.estimate.price is not None
            for each in self.verdicts
            if each.estimate and each.can_train and each.question.slice.machine
        ]
        if len(self.verdicts) == 1:
            return "the slice"
        if best.estimate is None or best.estimate.price is None:
            return "the smallest of those (no price is known)"
        return "cheapest at roofline speed of those" + ("" if all(priced) else " with a known price")

    @property
    def _months(self) -> list[str]:
        """The months in which the prices were quoted."""
        estimates = [each.estimate for each in self.verdicts if each.estimate]
        return sorted({each.price.month for each in estimates if each.price})

    def _keys(self, best: advice.SliceVerdict) -> dict[str, object]:
        keys = advice.keys_to_set(best)
        return {**keys, **dict(self.training_keys)} if keys else {}
