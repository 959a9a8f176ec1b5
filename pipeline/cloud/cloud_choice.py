"""The workload that a command of cloud_runner.py works on, as named on its command line. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from slipway.pipeline.config import WorkloadChoice
from slipway.pipeline.terminal.invocation import CLOUD, DEFAULT_OUTPUT, command

_WITH_OUTPUT = ("submit", "follow", "schedule back-fill")  # the commands that have the option


@dataclass(frozen=True)
class CloudChoice(WorkloadChoice):
    """A workload, and one of its schedules.

    Attributes:
        schedule: the name of the schedule; None means the workload's name.
        overrides: reasons to let a run pass a gate despite its findings; see `Request`.
        output: the folder of the local runs, in which followed runs are kept for trackers.
    """

    schedule: str | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)
    output: Path = DEFAULT_OUTPUT

    def command(self, verb: str, *words: str) -> str:
        """Return a command to paste: `verb`, this workload with its options, and `words`; no overrides."""
        name = ("--name", self.schedule) if self.schedule else ()
        words = (*verb.split(), str(self.workload), *self.options, *name, *words)
        return command(*words, output=self.output if verb.startswith(_WITH_OUTPUT) else None, program=CLOUD)
