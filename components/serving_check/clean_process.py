"""Runs `client.py` in a process with neither our modules nor our settings, and collects its report."""

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from slipway.components.accelerators import HIDDEN
from slipway.components.event_lines import read_event
from slipway.components.isolated_script import IsolatedScript
from slipway.components.python_process import ending

CLIENT = IsolatedScript(
    str(Path(__file__).with_name("client.py")),
    {
        **HIDDEN,
        "TF_CPP_MIN_LOG_LEVEL": "2",  # errors only
        "PYTHONDONTWRITEBYTECODE": "1",
    },
)
"""Has no access to a GPU, because its answers are compared with those of the CPU."""
# The process's own limit only applies if this process, which enforces `limit_s`, no longer exists.
_OWN_LIMIT_AFTER_S = 10.0


def ask_in_clean_process(model: Path, folder: Path, *, limit_s: float) -> dict[str, Any]:
    """Query the model with the requests in a folder.

    Args:
        model: the folder of the SavedModel.
        folder: see `client.py`; gets `answers.npz`.
        limit_s: seconds after which the process is killed, > 0.

    Returns:
        `report_of` the process's output and its end.
    """
    process = CLIENT.start([str(model), str(folder), str(limit_s + _OWN_LIMIT_AFTER_S)])
    assert process.stdout is not None  # noqa: S101  (it is a pipe)
    is_late = threading.Event()

    def end() -> None:
        is_late.set()
        process.kill()

    timer = threading.Timer(limit_s, end)
    timer.start()
    try:
        with process.stdout:
            output = process.stdout.read()
        code = process.wait()
    finally:
        timer.cancel()
        if process.poll() is None:
            process.kill()
            process.wait()
    how = f"did not end within {limit_s:g} s" if is_late.is_set() else ""
    if not how and code != 0:
        how = ending(code)
    return report_of([event for line in output.splitlines() if (event := read_event(line))], ending=how)


def report_of(events: Sequence[Mapping[str, Any]], *, ending: str) -> dict[str, Any]:
    """Merge the client's output into one document. Pure.

    Args:
        events: the lines of its output.
        ending: how the process ended, in words; empty if it finished normally.

    Returns:
        `crash` (in words, with the stage; empty for none), `failed` ({stage, error} each), `not_finite`
        (indices of perturbed rows), `refused` ({row, type, error} each), `signatures`, `latency` ({rows:
        {calls, p50_ms, p99_ms, rows_per_s}}), and, if reported, `tensorflow`, `import_s`, `load_s`,
        `memory_bytes`, `memory_before_bytes`.
    """
    report: dict[str, Any] = {
        "crash": "", "failed": [], "not_finite": [], "refused": [], "signatures": {}, "latency": {},
    }  # fmt: skip
    stage = "starting"
    for event in events:
        values = {name: value for name, value in event.items() if name != "event"}
        match event["event"]:
            case "stage":
                stage = values["stage"]
            case "failed" | "refused" as kind:
                report[kind].append(values)
            case "not_finite":
                report["not_finite"].append(values["row"])
            case "latency":
                report["latency"][str(values.pop("rows"))] = values
            case _:
                report.update(values)
    if ending:
        report["crash"] = f"{ending} while {stage}"
    return report
