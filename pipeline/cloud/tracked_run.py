"""Hands followed runs over to the workload's trackers: keeps a record of each in the form of a local run's.

The settings that a run was submitted with are kept for its experiment, too.

The records are in OUTPUT/cloud/, apart from local runs; `slipway.pipeline.tracking.sender` reads both.
"""

import copy
import dataclasses
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from slipway.pipeline.cloud.cloud_choice import CloudChoice
from slipway.pipeline.cloud.services.service import JobState
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.errors import PipelineError
from slipway.pipeline.runs.history import History
from slipway.pipeline.runs.lock import locked
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.runs.run_target import OfWorkload, RecordedRequest, WorkloadRun
from slipway.pipeline.terminal.printable import say
from slipway.pipeline.tracking import enqueue, spool

# A folder is named after the run, whose name may be given on the command line.
RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
# For another `follow` of the same run, which copies a few small files.
_LOCK_WAIT_S = 10.0
_WHOLE, _IN_PART = "reports", "reports-in-part"


@dataclass(frozen=True)
class Followed:
    """A run that was followed to its end.

    Attributes:
        state: the last state that the service reported.
        reports: the folder with copies of its artifacts' reports, to which the record points.
        is_whole: whether all reports that exist could be read.
    """

    record: RunRecord
    state: JobState
    reports: Path
    is_whole: bool


def trackers_of(config: WorkloadConfig) -> str:
    """Return the keys of the trackers that the workload names, as text; empty if it names none."""
    return ", ".join(f"track.{name}" for name in enqueue.TRACKERS if getattr(config.track, name))


def keep_settings(config: WorkloadConfig, run: str, *, chosen: CloudChoice) -> str:
    """Keep the settings of a submitted run, because the workload file may change before it is followed.

    Args:
        config: the settings; if they name neither a tracker nor an experiment, nothing is kept.
        run: the service's name of the run.
        chosen: the workload as named on the command line, and the folder.

    Returns:
        Why they were not kept, in words; empty if they were, or need not be.
    """
    is_told = trackers_of(config) or config.cloud.vertex.experiment
    if not is_told or not RUN_NAME.fullmatch(run):
        return ""
    try:
        history = History(_home(chosen))
        with locked(history.folder(run), run_id=f"submit {run}", wait_s=_LOCK_WAIT_S):
            if history.run(run) is None:
                history.save(_new(config, run, chosen=chosen))
    except Exception as error:  # the run was started, whatever becomes of this
        return f"warning: a later follow takes the settings of its own time: {_in_words(error)}"
    return ""


def kept_settings(run: str, *, chosen: CloudChoice) -> dict[str, object] | None:
    """Return the settings of a run that `keep_settings` kept, as JSON; None if there are none here.

    Args:
        run: the service's name of the run.
        chosen: the workload as named on the command line, and the folder.
    """
    if not RUN_NAME.fullmatch(run):
        return None
    try:
        kept = History(_home(chosen)).run(run)
        target = kept.target.target if kept is not None else None
        found = json.loads(target.config) if isinstance(target, OfWorkload) else None
    except (OSError, ValueError, PipelineError):  # damaged: the run's exit code stays
        return None
    return found if isinstance(found, dict) else None


def hand_over(seen: Followed, config: WorkloadConfig, *, chosen: CloudChoice) -> str:
    """Leave a followed run to the workload's trackers and have another process send it; once for each run.

    Only if reports could not be read the first time is the run sent again, completed, when they can be.

    Args:
        config: the settings of the command that follows, which name the trackers. The run's parameters are
            those kept when it was submitted, or these.
        chosen: the workload as named on the command line, and the folder.

    Returns:
        What was done or why not, in words; empty if no tracker is named.
    """
    record, names = seen.record, trackers_of(config)
    if not names:
        return ""
    if record.workload != config.name:  # `follow` takes any run's name
        return f"not sent to {names}: it is a run of {record.workload}, not of {config.name}"
    if not RUN_NAME.fullmatch(record.run_id):
        return f"not sent to {names}: {record.run_id!r} cannot be the name of a folder"
    again = chosen.command(f"follow {record.run_id}")
    try:
        history = History(_home(chosen))
        with locked(history.folder(record.run_id), run_id=f"follow {record.run_id}", wait_s=_LOCK_WAIT_S):
            is_new = _leave(seen, config, history, chosen=chosen)
        if spool.all_waiting(chosen.output.absolute()):
            enqueue.start(chosen.output.absolute())
    except Exception as error:  # such as a damaged record: the run's exit code stays
        return f"not sent to {names}: {_in_words(error)}; again: {again}"
    return f"Handed to {names}." if is_new else f"Handed to {names} before; nothing is sent twice."


def _leave(seen: Followed, config: WorkloadConfig, history: History, *, chosen: CloudChoice) -> bool:
    """Keep the run as a local one is kept, and put it into the spool; return False if it was before."""
    run, folder = seen.record.run_id, history.folder(seen.record.run_id)
    before = history.run(run)
    was_left = before is not None and before.state != "running"
    if was_left and ((folder / _WHOLE).is_dir() or not seen.is_whole):
        return False
    record = _told(seen, before or _new(config, run, chosen=chosen), config)
    record.resumed = before.resumed + 1 if before is not None and was_left else 0
    # The sender leaves a running run alone. So a process that is killed in what follows loses nothing: the
    # next `follow` does all of it again.
    ended, record.state = record.state, "running"
    history.save(record)
    _keep_reports(record, seen.reports, folder / (_WHOLE if seen.is_whole else _IN_PART))
    lines = "".join(f"{json.dumps(event)}\n" for event in _events(seen))
    (folder / "events.jsonl").write_text(lines, encoding="utf-8")
    _write_page(dataclasses.replace(record, state=ended))
    enqueue.leave(record)
    record.state = ended
    history.save(record)
    return True


def _write_page(record: RunRecord) -> None:
    """Write the run's report page, which trackers get; a failure is only reported."""
    try:
        from slipway.pipeline.report import page  # needs Jinja, and only a run that is sent has a page

        page.write_page(record, record.output)
    except Exception as error:
        say(f"warning: no report was written: {_in_words(error)}")


def _home(chosen: CloudChoice) -> Path:
    return chosen.output.absolute() / spool.CLOUD


def _new(config: WorkloadConfig, run: str, *, chosen: CloudChoice) -> RunRecord:
    """Return the record of a run of which only the settings are known."""
    home = _home(chosen)
    target = WorkloadRun(config=config.model_dump_json(by_alias=True), output=home)
    asked = RecordedRequest(target=target, output=home, again=chosen.command("submit"))
    return RunRecord(run_id=run, workload=config.name, target=asked, output=home)


def _told(seen: Followed, kept: RunRecord, config: WorkloadConfig) -> RunRecord:
    """Return the run as trackers get it: with its settings, and the times of the service."""
    record = copy.deepcopy(seen.record)
    record.target, record.output = _tracked_by(kept.target, config), kept.output
    if seen.state.phase == "cancelled":
        record.state = "interrupted"
    if seen.state.began is not None:
        record.started_at = seen.state.began.isoformat(timespec="seconds")
        begun = {task.name: task.began for task in seen.state.tasks}
        for node in record.nodes:
            if (at := begun.get(node.id)) is not None:
                node.started_s = max(0.0, (at - seen.state.began).total_seconds())
    return record


def _tracked_by(asked: RecordedRequest, config: WorkloadConfig) -> RecordedRequest:
    """Return a request with the trackers that these settings name."""
    settings = json.loads(asked.target.config) if isinstance(asked.target, OfWorkload) else {}
    track = json.loads(config.model_dump_json(include={"track"}, by_alias=True))
    target = WorkloadRun(config=json.dumps(settings | track), output=asked.output)
    return RecordedRequest(target=target, output=asked.output, again=asked.again)


def _keep_reports(record: RunRecord, reports: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)  # of an attempt that was cut off
    shutil.copytree(reports, folder)
    for node in record.nodes:
        for artifacts in node.outputs.values():
            for artifact in artifacts:
                if "copy_of" in artifact:
                    artifact["uri"] = str(folder / Path(artifact["uri"]).relative_to(reports))


def _events(seen: Followed) -> Iterator[dict[str, str]]:
    """Yield begin and end of the tasks that ran and of the run, in the form of a local run's events."""
    nodes = {node.id for node in seen.record.nodes}
    for task in seen.state.tasks:
        if task.name in nodes and task.state in ("complete", "failed") and task.began and task.ended:
            yield {"at": _iso(task.began), "node": task.name, "state": "running"}
            yield {"at": _iso(task.ended), "node": task.name, "state": task.state}
    if seen.state.ended is not None:
        yield {"at": _iso(seen.state.ended), "run": seen.record.run_id, "state": seen.record.state}


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds")


def _in_words(error: Exception) -> str:
    kind = "" if isinstance(error, OSError | PipelineError) else f"{type(error).__name__}: "
    return kind + " ".join(str(error).split())
