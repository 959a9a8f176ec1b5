"""Notifies a command or webhook of a run's end; a failed notification never changes the run's outcome."""

import html
import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from slipway.components.finite_json import finite
from slipway.components.project import PROJECT_ROOT
from slipway.components.time_limit import LateError, within
from slipway.pipeline.errors import ConfigError
from slipway.pipeline.runs.outcome import nodes_in_the_way, read_stops, read_verdict
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.screen.wording import summary
from slipway.pipeline.wiring.own_commands import check_webhook

# The end of a run is delayed by a notification at most this long.
COMMAND_LIMIT_S = 60.0
WEBHOOK_LIMIT_S = 10.0
_STANDARD_ERROR = 2


def notify(record: RunRecord) -> Iterator[str]:
    """Send the notifications that the run's workload configures.

    Yields:
        One line for each problem; it never contains the webhook's address.
    """
    settings = record.target.settings
    config = settings.notify if settings else None
    if config is None or record.state not in config.when:
        return
    yield from send(config.command, config.webhook_env, message(record))


def send(command: Sequence[str], webhook_env: str | None, payload: Mapping[str, object]) -> Iterator[str]:
    """Send a message to a command and to a webhook, as far as these are given.

    Args:
        webhook_env: the environment variable that holds the webhook's address.
        payload: the message, as plain data; numbers that are not finite are sent as null.

    Yields:
        One line for each problem; it never contains the webhook's address.
    """
    document = finite(payload)
    if command:
        yield from _command(command, document)
    if webhook_env:
        yield from _webhook(webhook_env, _for_chat(document))


def message(record: RunRecord) -> dict[str, object]:
    """Return the message about a run: the outcome in a sentence or two (`text`), and the numbers.

    A metric that is NaN or infinite is None in it. Of what a gate found, only its rules' names: no data.
    """
    stops = read_stops(record)
    outcome = next(iter(summary(record, stops=stops, verdict=read_verdict(record))), record.state)
    found = (finding for verdict in stops.values() for finding in verdict.get("findings", ()))
    rules = list(
        dict.fromkeys(str(each["rule"]) for each in found if each.get("rule") and each.get("stops", True))
    )
    told = f" Rules: {', '.join(rules)}." if rules else ""
    return {
        "text": f"{record.workload} ({record.run_id}): {outcome}{told}",
        "workload": record.workload,
        "run_id": record.run_id,
        "state": record.state,
        "exit_code": record.exit_code,
        "nodes": nodes_in_the_way(record),
        "rules": rules,
        "wall_s": record.wall_s,
        "metrics": finite(record.metrics),
        "pushed": record.pushed,
    }


def _for_chat(payload: Mapping[str, object]) -> Mapping[str, object]:
    """Return the message with what chats take for mentions and links as plain characters.

    Names of classes and errors of the data are in its text. See
    https://docs.slack.dev/messaging/formatting-message-text/#escaping.
    """
    return {**payload, "text": html.escape(str(payload["text"]), quote=False)}


def _command(command: Sequence[str], payload: Mapping[str, object]) -> Iterator[str]:
    try:
        # Its output goes to standard error: standard output may be the JSON of `watch --json`.
        done = subprocess.run(
            command,
            cwd=PROJECT_ROOT,  # the workload file, which names it, does not know who calls from where
            input=json.dumps(payload),
            stdout=_STANDARD_ERROR,
            text=True,
            timeout=COMMAND_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        yield f"notify.command {command[0]!r} took longer than {COMMAND_LIMIT_S:g} s and was ended"
    except (OSError, ValueError) as error:
        yield f"notify.command {command[0]!r} cannot be started: {error}"
    else:
        if done.returncode:
            yield f"notify.command {command[0]!r} ended with code {done.returncode}"


def _webhook(variable: str, payload: Mapping[str, object]) -> Iterator[str]:
    try:
        check_webhook(variable)
    except ConfigError as error:
        yield error.message
        return
    address = os.environ[variable]
    try:
        # The timeout of `requests` restarts with every byte received; this one limits the total time.
        problem = within(WEBHOOK_LIMIT_S, lambda: _post(address, payload))
    except LateError:
        problem = "did not answer in time"
    if problem:
        yield f"notify: the address in {variable} {problem}"


def _post(address: str, payload: Mapping[str, Any]) -> str:
    """Post the message; return "", or an error in words without the address."""
    from slipway.components.http_session import PlainSession

    try:
        # No redirects: the message goes only to the address in the variable. The response is not read.
        with (
            PlainSession() as session,
            session.post(
                address, json=payload, timeout=WEBHOOK_LIMIT_S, allow_redirects=False, stream=True
            ) as answer,
        ):
            is_taken = answer.ok and not answer.is_redirect
            return "" if is_taken else f"answered {answer.status_code}"
    except (OSError, ValueError) as error:
        # The error's text contains the address, which is as secret as a password.
        return f"could not be reached ({type(error).__name__})"
