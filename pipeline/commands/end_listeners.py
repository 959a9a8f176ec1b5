"""The listeners of a run's end: they write its report page, inform trackers and send notifications."""

import contextlib

from slipway.pipeline.commands.notify import notify
from slipway.pipeline.runs.record import RunRecord
from slipway.pipeline.terminal.invocation import command
from slipway.pipeline.terminal.printable import say


def leave_to_trackers(record: RunRecord) -> None:
    """Note that the run is to be sent to the workload's trackers, in case the process is killed."""
    with contextlib.suppress(Exception):  # `hand_to_trackers` tries again, and reports it
        from slipway.pipeline.tracking import enqueue

        enqueue.leave(record, without_page=True)


def write_page(record: RunRecord) -> None:
    """Write the run's report page; a failure is only reported."""
    try:
        from slipway.pipeline.report import page

        page.write_page(record, record.output)
    except Exception as error:
        again = command("report", record.run_id, output=record.output)
        message = f"warning: no report was written: {type(error).__name__}: {error}; again: {again}"
        say(" ".join(message.split()))
    except KeyboardInterrupt:
        again = command("report", record.run_id, output=record.output)
        say(f"warning: no report was written: interrupted; again: {again}")
        raise


def send_notifications(record: RunRecord) -> None:
    """Send the notifications that the run's workload configures; a failure is only reported."""
    try:
        for problem in notify(record):
            say(f"warning: {problem}.")
    except Exception as error:
        say(f"warning: the notification failed: {type(error).__name__}: {error}")


def hand_to_trackers(record: RunRecord) -> None:
    """Have another process send the run to the workload's trackers; a failure is only reported."""
    outcome = "this run is sent to no tracker"
    try:
        from slipway.pipeline.tracking import enqueue

        if enqueue.leave(record):
            outcome = f"this run is not sent to trackers until {command('track', output=record.output)}"
            enqueue.start(record.output)
    except Exception as error:
        message = f"warning: {outcome}: {type(error).__name__}: {error}"
        say(" ".join(message.split()))


# The report page is written before the run is sent, because trackers get it; that the run is to be sent is
# noted before, because the process may be killed while it writes the page. Notifications come last because
# only they make the run wait, and may be cut short.
END_LISTENERS = (leave_to_trackers, write_page, hand_to_trackers, send_notifications)
