"""The workload that a command of cloud_runner.py is about, as named on its command line. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from slipway.pipeline.config import WorkloadConfig, load_workload
from slipway.pipeline.plan.request import workload_file
from slipway.pipeline.root import PROJECT_ROOT
from slipway.pipeline.terminal.invocation import CLOUD, command


@dataclass(frozen=True)
class WorkloadChoice:
    """Which workload, and which of its schedules.

    Attributes:
        workload: the workload file, or its name in workloads/.
        sets: `key=value` over the file.
        profile: one of the file's profiles.
        schedule: the name of the schedule; None: the workload's.
        overrides: reasons to let a run pass a gate despite its findings; see `Request`.
    """

    workload: Path
    sets: Sequence[str]
    profile: str | None
    schedule: str | None = None
    overrides: Mapping[str, str] = field(default_factory=dict)

    def config(self) -> WorkloadConfig:
        """The workload's settings.

        Raises:
            ConfigError: they are wrong.
        """
        path = workload_file(self.workload).absolute()
        return load_workload(path, sets=self.sets, profile=self.profile, root=PROJECT_ROOT)

    def command(self, verb: str, *words: str) -> str:
        """A command for this workload, to paste: first words, the workload's, and more; no overrides."""
        profile = ("--profile", self.profile) if self.profile else ()
        sets = (word for item in self.sets for word in ("--set", item))
        name = ("--name", self.schedule) if self.schedule else ()
        return command(*verb.split(), str(self.workload), *profile, *sets, *name, *words, program=CLOUD)
