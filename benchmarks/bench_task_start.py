"""Reads how long tasks take to start: python benchmarks/bench_task_start.py OUTPUT

OUTPUT is the output folder of a rehearsal in containers (`cloud_runner.py rehearse --containers --output
OUTPUT`). For each task that ran: the seconds from the start of its container to the line before the first of
its executor; meanwhile Python, TFX and the executor's own modules are imported. Ingest's begin with its
driver's container. How many ran side by side is shown.
"""

import json
import re
import statistics
import sys
from datetime import UTC, datetime
from pathlib import Path

# absl's: month and day, then the time in UTC, as in the image.
STARTED = re.compile(r"^I(\d{4} \d\d:\d\d:\d\d\.\d+) .*\] Starting executor$", re.MULTILINE)


def started(log, year):
    """Return when a task's executor began; None if its log does not say."""
    found = STARTED.search(log)
    return found and datetime.strptime(f"{year}{found[1]}", "%Y%m%d %H:%M:%S.%f").replace(tzinfo=UTC)


def main(output):
    """Print the seconds of the latest rehearsal's tasks."""
    run = max(Path(output, "rehearsal/runs").glob("*/events.jsonl")).parent
    taken, at_work = [], set()
    for event in map(json.loads, (run / "events.jsonl").read_text().splitlines()):
        if "node" not in event:
            continue
        if event["state"] != "running":
            at_work.discard(event["node"])
            continue
        at_work.add(event["node"])
        began = datetime.fromisoformat(event["at"])
        log = run / "logs" / f"{event['node']}.log"
        if log.exists() and (ready := started(log.read_text(errors="replace"), began.year)):
            taken.append((ready - began).total_seconds())
            print(f"{event['node']:<18} {taken[-1]:5.1f} s, {len(at_work)} at once")
    print(f"median {statistics.median(taken):.1f} s, {min(taken):.1f} to {max(taken):.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
