"""The command `accept-schema`: shows and applies the schema edits that a run's data gate proposed."""

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from slipway.components.atomic_file import whole_file
from slipway.components.data_gate.finding import Edit
from slipway.components.data_gate.schema import FeatureSchema
from slipway.components.data_gate.schema_edits import apply_edits
from slipway.components.errors import ComponentError
from slipway.components.project import PROJECT_ROOT
from slipway.components.typed_json import typed
from slipway.pipeline.commands.show import find
from slipway.pipeline.errors import PipelineError, UsageError
from slipway.pipeline.runs.outcome import read_stops, read_verdicts
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.screen.wording import rerun_command


@dataclass(frozen=True)
class Proposal:
    """A proposed change of the schema file.

    Attributes:
        after: the text with the edits applied; equal to `before` if it already has them.
    """

    path: Path
    before: str
    after: str

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        name = self.path.relative_to(PROJECT_ROOT) if self.path.is_relative_to(PROJECT_ROOT) else self.path
        lines = (self.before.splitlines(), self.after.splitlines())
        return "\n".join(difflib.unified_diff(*lines, f"{name}", f"{name} (accepted)", lineterm="", n=2))


def propose(record: RunRecord) -> Proposal:
    """Apply the edits that a run's data gate proposed to the current text of the schema file.

    Nothing is written.

    Raises:
        UsageError: the run proposed no edit or has no schema file, or the file cannot be read or no longer
            fits the edits.
        PipelineError: the edited text would not mean exactly what the edits intend.
    """
    edits = list(dict.fromkeys(_edits(record)))
    if not edits:
        raise UsageError(f"Run {record.run_id} proposed no edit of a schema.")
    settings = record.target.settings
    if settings is None or settings.schema is None:
        raise UsageError(
            f"The schema of {record.workload} is inferred from its data: there is no file to edit."
        )
    path = Path(settings.schema)
    try:
        before = path.read_bytes().decode("utf-8")
        after = apply_edits(before, edits)
        _check(before, after, edits)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error
    except ComponentError as error:
        raise UsageError(f"{path}: {error.message}", hint=error.hint) from error
    return Proposal(path, before, after)


def accept(proposal: Proposal, *, agrees: Callable[[str], bool]) -> bool:
    """Write the schema file atomically if `agrees` returns True for the diff; return whether it was written.

    Args:
        proposal: from `propose`.
        agrees: given the diff, says whether to apply it.

    Raises:
        PipelineError: the file has changed since `propose`, or cannot be written; it is left as it is.
    """
    if proposal.before == proposal.after or not agrees(proposal.diff):
        return False
    path = proposal.path.resolve()  # keeps a symbolic link
    try:
        if path.read_bytes() != proposal.before.encode():
            raise PipelineError(f"{path} was changed meanwhile; nothing is written.", hint="try again")
        with whole_file(path, survives_power_loss=True) as partial:
            partial.write_bytes(proposal.after.encode())
            partial.chmod(path.stat().st_mode & 0o777)
    except OSError as error:
        raise PipelineError(f"{path} cannot be written: {error.strerror}; it is unchanged.") from error
    return True


def _edits(record: RunRecord) -> Iterator[Edit]:
    for verdict in [*read_stops(record).values(), *read_verdicts(record)]:
        for finding in verdict.get("findings", ()):
            yield from typed(list[Edit], finding.get("edits", []))


def _check(before: str, after: str, edits: list[Edit]) -> None:
    """Reject an edited text that differs in anything but the intended edits."""
    from google.protobuf import text_format
    from tensorflow_metadata.proto.v0 import schema_pb2

    from slipway.components.data_gate.protos import schema_features

    old, new = (text_format.Parse(text, schema_pb2.Schema()) for text in (before, after))
    touched = {edit.feature for edit in edits}
    domains = {feature.domain for feature in old.feature if feature.name in touched} - {""}
    for schema in (old, new):
        for field, names in (("feature", touched), ("string_domain", domains)):
            kept = [each for each in getattr(schema, field) if each.name not in names]
            schema.ClearField(field)
            getattr(schema, field).extend(kept)
    allowed, earlier = schema_features(after), schema_features(before)
    if old != new or not all(_holds(edit, allowed, earlier) for edit in edits):
        raise PipelineError(
            "the edits cannot be made in this schema without changing more; nothing is written.",
            hint="make them by hand: `show` lists them",
        )


def _holds(edit: Edit, allowed: Mapping[str, FeatureSchema], earlier: Mapping[str, FeatureSchema]) -> bool:
    now, then = allowed.get(edit.feature), earlier.get(edit.feature)
    if now is None:
        return False
    if edit.kind == "add_values":
        return (now.domain or frozenset()) >= ((then and then.domain) or frozenset()) | {*edit.values}
    if edit.kind == "set_range":
        return bool(getattr(now, edit.text) == edit.number)
    if edit.kind == "set_presence":
        return now.min_fraction == edit.number
    if edit.kind == "set_mass":
        return now.min_domain_mass == edit.number
    return edit.kind != "add_feature" or now.type == edit.text


def accept_schema(name: str | None, output: Path, *, agrees: Callable[[str], bool]) -> str:
    """Apply a run's proposed edits to its schema file if `agrees` returns True for the diff.

    Returns:
        A message that says what was done and what to do next.

    Raises:
        UsageError: there is no edit to apply, or it does not fit the current file.
        PipelineError: the file could not be written.
    """
    record = find(name, output)
    proposal = propose(record)
    if proposal.before == proposal.after:
        return f"{proposal.path} already has these edits.\nhint: {rerun_command(record)}"
    if not accept(proposal, agrees=agrees):
        return f"{proposal.path} is unchanged."
    return f"{proposal.path} was changed.\nhint: {rerun_command(record)}"
