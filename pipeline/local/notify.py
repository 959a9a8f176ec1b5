"""Tells a command or a webhook how a run ended; the end stays the same, whatever goes wrong with that."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.local.outcome import read_stops, read_verdict
from pipeline.local.record import RunRecord
from pipeline.local.wording import summary

# Nobody waits for a run's end longer than this because of who is to hear of it.
COMMAND_LIMIT_S = 60.0
WEBHOOK_LIMIT_S = 10.0


def notify(record: RunRecord) -> Iterator[str]:
    """Tells whom the run's workload names.

    Args:
        record: the finished run.

    Yields:
        What went wrong with it, a line each; never the webhook's address.
    """
    config = _config(record)
    if not config or record.state not in config["when"]:
        return
    told = message(record)
    if config["command"]:
        yield from _command(config["command"], told)
    if config["webhook_env"]:
        yield from _webhook(config["webhook_env"], told)


def message(record: RunRecord) -> dict[str, Any]:
    """What is told: the outcome in one sentence (`text`), and the numbers."""
    outcome = next(
        iter(summary(record, stops=read_stops(record), verdict=read_verdict(record))), record.state
    )
    return {
        "text": f"{record.workload} ({record.run_id}): {outcome}",
        "workload": record.workload,
        "run_id": record.run_id,
        "state": record.state,
        "exit_code": record.exit_code,
        "wall_s": record.wall_s,
        "metrics": record.metrics,
        "pushed": record.pushed,
    }


def _config(record: RunRecord) -> Mapping[str, Any] | None:
    """The `notify` that the run was begun with; a pipeline without a workload file has none."""
    written = record.target.get("target", {}).get("config")
    found: Mapping[str, Any] | None = json.loads(written).get("notify") if written else None
    return found


def _command(command: list[str], told: Mapping[str, Any]) -> Iterator[str]:
    try:
        done = subprocess.run(
            command, input=json.dumps(told), text=True, timeout=COMMAND_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        yield f"notify.command {command[0]!r} took longer than {COMMAND_LIMIT_S:g} s and was ended"
    except (OSError, ValueError) as error:
        yield f"notify.command {command[0]!r} cannot be started: {error}"
    else:
        if done.returncode:
            yield f"notify.command {command[0]!r} ended with code {done.returncode}"


def _webhook(variable: str, told: Mapping[str, Any]) -> Iterator[str]:
    import requests

    address = os.environ.get(variable, "")
    if not address.startswith(("https://", "http://")):
        held = "holds no http(s) address" if address else "is not set"
        yield f"notify.webhook_env: the environment variable {variable} {held}"
        return
    try:
        # Not followed elsewhere: the message goes to whom the variable names.
        answer = requests.post(address, json=told, timeout=WEBHOOK_LIMIT_S, allow_redirects=False)
    except requests.RequestException as error:
        # Its own words hold the address, which is as good as a password.
        yield f"notify: the address in {variable} could not be reached ({type(error).__name__})"
        return
    if not answer.ok or answer.is_redirect:
        yield f"notify: the address in {variable} answered {answer.status_code}"
