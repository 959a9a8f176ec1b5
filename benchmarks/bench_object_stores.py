"""Compares Ingest from s3:// and az:// with gs://: python benchmarks/bench_object_stores.py [MB] [RUNS]

The same CSV files lie in the stores on loopback that the tests use, each in a process of its own: a Cloud
Storage, Moto's S3 and, after `make azurite`, Azurite. Measured is what a process of Ingest does with each
file: fetch it and read its rows; the runs take turns.
"""

import os
import statistics
import sys
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(PROJECT), str(PROJECT / "tests/support")]
from object_servers import azure, has_azurite, running, s3  # noqa: E402

FILES = 4


def gs_bucket(servers):
    """Start the Cloud Storage; return its bucket, and what writes a file there."""
    port = servers.enter_context(running(PROJECT / "tests/integration/ingest/object_store.py"))
    os.environ["STORAGE_EMULATOR_HOST"] = address = f"http://127.0.0.1:{port}"

    def put(name, data):
        url = f"{address}/_objects/bucket/{name}"
        request = urllib.request.Request(url, data, method="PUT")  # noqa: S310
        urllib.request.urlopen(request, timeout=60).close()  # noqa: S310

    return "gs://bucket", put


def other_bucket(server):
    """Return a new bucket of S3 or Azure, and what writes a file there."""
    from slipway.components.s3_and_azure_store import open_store

    os.environ |= server.variables
    bucket = server.make_bucket()
    return bucket, open_store(bucket).put


def ingested(bucket):
    """Fetch and read all files; return the wall seconds and the CPU seconds of this process."""
    from slipway.components.ingest.csv_table import infer, read
    from slipway.components.ingest.options import Options
    from slipway.components.ingest.storage import fetched, list_files

    began, used, rows = time.perf_counter(), time.process_time(), 0
    for stored in list_files(f"{bucket}/trips/*.csv"):
        with fetched(stored) as file:
            columns = infer(file, Options(), {})
            rows += sum(block.rows for block in read(file, Options(), columns))
    assert rows
    return time.perf_counter() - began, time.process_time() - used


def main(megabytes=100, runs=5):
    """Measure and print the medians, and their ratios to those of gs://."""
    line = b"%d,%d,Taxi Affiliation Services,3.25\n"
    count = megabytes * 10**6 // FILES // 48
    data = b"trip,seconds,company,miles\n" + b"".join(line % (i + 10**9, i) for i in range(count))
    with ExitStack() as servers:
        stores = {"gs": gs_bucket(servers), "s3": other_bucket(servers.enter_context(s3()))}
        if has_azurite():
            stores["az"] = other_bucket(servers.enter_context(azure()))
        for _, put in stores.values():
            for number in range(FILES):
                put(f"trips/{number}.csv", data)
        taken = {kind: [] for kind in stores}
        for number in range(runs + 1):
            for kind, (bucket, _) in stores.items():
                seconds = ingested(bucket)
                if number:  # the first one imports and connects
                    taken[kind].append(seconds)
    median = {
        kind: [statistics.median(each) for each in zip(*all_, strict=True)] for kind, all_ in taken.items()
    }
    for kind, (wall_s, cpu_s) in median.items():
        wall, cpu = wall_s / median["gs"][0], cpu_s / median["gs"][1]
        print(
            f"{kind}: {FILES * len(data) / 1e6:.0f} MB in {wall_s:.2f} s, {cpu_s:.2f} s of CPU here: "
            f"{wall:.2f} of gs' time, {cpu:.2f} of its CPU"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
