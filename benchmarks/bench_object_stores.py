"""Compares Ingest from s3:// and from gs://: python benchmarks/bench_object_stores.py [MEGABYTES] [RUNS]

The same CSV files lie in both stores on loopback that the tests use, each in a process of its own. Measured
is what a process of Ingest does with each file: fetch it and read its rows; the runs take turns.
"""

import os
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))
FILES = 4
SERVERS = {"gs": "ingest/object_store.py", "s3": "s3_store.py"}


def put(address, data=b""):
    """Write an object, or make a bucket."""
    request = urllib.request.Request(address, data, method="PUT")  # noqa: S310
    urllib.request.urlopen(request, timeout=60).close()  # noqa: S310


def ingested(kind):
    """Fetch and read all files, and return the wall seconds and the CPU seconds of this process."""
    from slipway.components.ingest.csv_table import infer, read
    from slipway.components.ingest.options import Options
    from slipway.components.ingest.storage import fetched, list_files

    began, used, rows = time.perf_counter(), time.process_time(), 0
    for stored in list_files(f"{kind}://bucket/trips/*.csv"):
        with fetched(stored) as file:
            columns = infer(file, Options(), {})
            rows += sum(block.rows for block in read(file, Options(), columns))
    assert rows
    return time.perf_counter() - began, time.process_time() - used


def main(megabytes=100, runs=5):
    """Measure and print the medians, and their ratio."""
    from slipway.components.s3_and_azure_store import open_store

    servers, ports = [], {}
    try:
        for kind, script in SERVERS.items():
            command = [sys.executable, PROJECT / "tests/integration" / script]
            servers.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
            ports[kind] = f"http://127.0.0.1:{int(servers[-1].stdout.readline())}"
        os.environ |= {
            "STORAGE_EMULATOR_HOST": ports["gs"],
            "AWS_ENDPOINT_URL": ports["s3"],
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": "k",
            "AWS_SECRET_ACCESS_KEY": "s",
            "AWS_REGION": "us-east-1",
        }
        line = b"%d,%d,Taxi Affiliation Services,3.25\n"
        count = megabytes * 10**6 // FILES // 48
        data = b"trip,seconds,company,miles\n" + b"".join(line % (i + 10**9, i) for i in range(count))
        put(f"{ports['s3']}/bucket")
        store = open_store("s3://bucket")
        for number in range(FILES):
            put(f"{ports['gs']}/_objects/bucket/trips/{number}.csv", data)
            store.put(f"trips/{number}.csv", data)
        taken = {kind: [] for kind in SERVERS}
        for number in range(runs + 1):
            for kind in SERVERS:
                seconds = ingested(kind)
                if number:  # the first one imports and connects
                    taken[kind].append(seconds)
        median = {
            kind: [statistics.median(each) for each in zip(*all_, strict=True)]
            for kind, all_ in taken.items()
        }
        for kind, (wall_s, cpu_s) in median.items():
            print(f"{kind}: {FILES * len(data) / 1e6:.0f} MB in {wall_s:.2f} s, {cpu_s:.2f} s of CPU here")
        wall, cpu = (s3 / gs for s3, gs in zip(median["s3"], median["gs"], strict=True))
        print(f"s3 / gs: {wall:.2f} of the time, {cpu:.2f} of the CPU")
    finally:
        for server in servers:
            server.terminate()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
