"""Runs `new` for images: examines them, decides, writes the files, and reports the decisions."""

from dataclasses import dataclass
from pathlib import Path

from slipway.components.errors import ComponentError
from slipway.components.ingest.source import resolve_source
from slipway.pipeline.errors import UsageError, raised_as
from slipway.pipeline.start.images.deciding import ImagePlan, decide
from slipway.pipeline.start.images.inspection import LABEL, existing_splits, inspect_images
from slipway.pipeline.start.images.writing import files_of
from slipway.pipeline.start.writing import write_files, written_lines
from slipway.pipeline.terminal.invocation import command

_SHOWN_CLASSES = 12
_TASKS = ("auto", "binary", "multiclass")


@dataclass(frozen=True)
class BegunImages:
    """A new workload for images.

    Attributes:
        files: the written files, relative to the project's root.
    """

    name: str
    files: tuple[str, ...]
    plan: ImagePlan

    def text(self) -> str:
        """Return the message for the user: decisions with reasons, the written files, the next command."""
        plan, facts = self.plan, self.plan.facts
        classes = plan.classes[:_SHOWN_CLASSES]
        width = max(len(str(name)) for name in classes)
        lines = [f"{facts.images:,} images of {len(plan.classes)} classes."]
        lines += [f"  {name!s:{width}}  {facts.classes[name]:,}" for name in classes]
        lines += (
            [f"  and {len(plan.classes) - len(classes):,} more"] if len(plan.classes) > len(classes) else []
        )
        colours = "grey" if plan.channels == 1 else "colour"
        lines += [
            "",
            f"  size     {plan.height}x{plan.width}: {plan.reasons['size']}",
            f"  colours  {colours}: {plan.reasons['colours']}",
            f"  network  {plan.reasons['network']}",
            f"  split    {self._split()}",
            "",
        ]
        lines += [*plan.notes, ""] if plan.notes else []
        return "\n".join([*lines, *written_lines(self.files), f"hint: {command('run', self.name)}"])

    def _split(self) -> str:
        parts = self.plan.facts.parts
        if parts:
            return f"trained on {parts['train']}, evaluated on {parts['eval']}, as the data is split already"
        return "two thirds are for training, the rest is for evaluation"


def new_images(
    name: str, *, data: Path, label: str | None, task: str, source: str, root: Path
) -> BegunImages:
    """Create a workload from images.

    Args:
        data: an npz file or a folder; an absolute path.
        label: must be None: the class of an image is given by its folder, or by the npz.
        task: "auto", or the task that follows from the number of classes.
        source: `data.source` of the workload.

    Raises:
        UsageError: an argument is not valid for the data; nothing is written.
    """
    if label is not None:
        says = "y_train holds the class" if data.is_file() else "the name of its folder is the class"
        raise UsageError(
            f"--label {label}: images have no columns; {says} of each.", hint="leave --label out"
        )
    if task not in _TASKS:
        raise UsageError(f"--task {task}: images have a class, not a number.", hint="leave --task out")
    with raised_as(UsageError, ComponentError):
        # Rejects what a run would reject, such as a folder whose name is a pattern.
        patterns = [f"{source}/{part}/*/*" for part in existing_splits(data).values()] or [source]
        for pattern in patterns:
            resolve_source(pattern, root=root, file_format="npz" if data.is_file() else "images")
        facts = inspect_images(data)
    plan = decide(facts, label=LABEL, data=source)
    if task == "binary" and plan.task != task:
        raise UsageError(f"--task binary: there are {len(plan.classes)} classes.", hint="leave --task out")
    files = files_of(plan, name=name, source=source)
    write_files(files, root)
    return BegunImages(name, tuple(files), plan)
