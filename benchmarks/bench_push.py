"""Compares pushing and predicting with a baseline each: python benchmarks/bench_push.py MODEL_FOLDER

MODEL_FOLDER is a pushed version of the taxi workload. Publishing is measured with 500 MB: to a directory,
compared with `cp` and SHA-256 of source and copy, and to a store on the loopback interface, compared with
google-cloud-storage's upload_many. Predicting is measured with rows of the taxi sample in batches, compared
with one call per row; the peak of memory is also measured with ten times as many rows.
"""

import argparse
import hashlib
import importlib.util
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))
MEGABYTE = 10**6


def timed(work):
    """Do the work, and return its wall seconds."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def write_model(folder, megabytes):
    """Write a folder like a model's: a small graph, and variables of random bytes in four files."""
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(os.urandom(MEGABYTE))
    for index in range(4):
        (folder / f"variables/variables.data-{index:05d}-of-00004").write_bytes(
            os.urandom(megabytes * MEGABYTE // 4)
        )
    return folder


def sha256(path):
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def copy_and_check(model, target):
    """Do the least possible work: copy to disk, and compare checksums."""
    subprocess.run(["/bin/cp", "-r", str(model), str(target)], check=True)
    subprocess.run(["/bin/sync", "-f", str(target)], check=True)
    for path in (path for path in model.rglob("*") if path.is_file()):
        assert sha256(path) == sha256(target / path.relative_to(model))


def bench_directory(model, folder, rounds):
    """Measure publishing to a directory."""
    from slipway.components.pusher.publish_to_folder import publish

    floor, ours = [], []
    for index in range(rounds):
        floor.append(timed(lambda i=index: copy_and_check(model, folder / f"copy-{i}")))
        shutil.rmtree(folder / f"copy-{index}")
        ours.append(timed(lambda i=index: publish(model, base=folder / f"base-{i}")))
        shutil.rmtree(folder / f"base-{index}")
    return {"cp and checksum s": min(floor), "publish s": min(ours), "ratio": min(floor) / min(ours)}


def bench_bucket(model, rounds):
    """Measure publishing to a bucket."""
    import urllib.request

    from google.cloud import storage
    from google.cloud.storage import transfer_manager

    from slipway.components.pusher.publish_to_bucket import publish_to_bucket

    store = subprocess.Popen(
        [sys.executable, str(PROJECT / "tests/integration/pusher/strict_store.py")],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        address = f"http://127.0.0.1:{int(store.stdout.readline())}"
        os.environ["STORAGE_EMULATOR_HOST"] = address
        names = [path.relative_to(model).as_posix() for path in model.rglob("*") if path.is_file()]
        floor, ours = [], []
        for index in range(rounds):
            for kind, times in (("floor", floor), ("ours", ours)):
                bucket = f"{kind}-{index}"
                urllib.request.urlopen(urllib.request.Request(f"{address}/_buckets/{bucket}", method="PUT"))  # noqa: S310
                if kind == "floor":
                    target = storage.Client(project="p").bucket(bucket)
                    times.append(
                        timed(
                            lambda target=target: transfer_manager.upload_many_from_filenames(
                                target,
                                names,
                                source_directory=str(model),
                                worker_type="thread",
                                raise_exception=True,
                            )
                        )
                    )
                else:
                    times.append(timed(lambda b=bucket: publish_to_bucket(model, base=f"gs://{b}/taxi")))
    finally:
        store.terminate()
        store.wait()
    return {"upload_many s": min(floor), "publish s": min(ours), "ratio": min(floor) / min(ours)}


def write_csv(path, rows):
    """Write a CSV file with the rows of the taxi sample, repeated."""
    package = Path(importlib.util.find_spec("tfx").origin).parent
    head, *lines = (
        (package / "examples/chicago_taxi_pipeline/data/simple/data.csv")
        .read_bytes()
        .splitlines(keepends=True)
    )
    lines[-1] = lines[-1].rstrip(b"\n") + b"\n"
    with path.open("wb") as file:
        file.write(head)
        for first in range(0, rows, len(lines)):
            file.writelines(lines[: min(len(lines), rows - first)])


def one_by_one(model_folder, csv, rows):
    """Return the rows per second with one call per row, on records that are encoded already."""
    from slipway.components.ingest.blocks import InputFile
    from slipway.components.ingest.options import Options
    from slipway.components.ingest.typed_rows import example_rows
    from slipway.components.predictor.predict_files import predict_rows
    from slipway.components.pusher.manifest import read_manifest
    from slipway.components.saved_model.loading import LoadedModel
    from slipway.components.saved_model.reading import read_signatures
    from slipway.pipeline.commands.model_columns import columns_with_types, schema_types

    model = LoadedModel(model_folder)
    schema = schema_types(read_manifest(model_folder))
    columns = columns_with_types(read_signatures(model_folder), schema, "csv")
    [found, *_] = example_rows(InputFile(str(csv), csv), Options(), columns, known=schema)
    records = found.records[:rows]
    predict_rows(model, records[:1])
    return len(records) / timed(lambda: [predict_rows(model, [record]) for record in records])


def predict(model_folder, csv, out):
    """Predict in this process; print rows per second and the peak of memory in MB."""
    from slipway.components.ingest.options import Options
    from slipway.components.ingest.storage import list_files
    from slipway.components.pusher.manifest import read_manifest
    from slipway.pipeline.commands.predict import _Logged, _predict, _Reading

    reading = _Reading(tuple(list_files(str(csv))), Options(), pass_through=())
    began = time.perf_counter()
    counts = _predict(read_manifest(model_folder), model_folder, reading, out, [], _Logged(None, 0))
    took = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        json.dumps(
            {"rows per s": counts.predicted / took, "s": took, "peak MB": peak, "rows": counts.predicted}
        )
    )


def bench_predict(model_folder, folder, sizes):
    """Measure predicting, by number of rows."""
    results = {}
    for rows in sizes:
        csv = folder / f"{rows}.csv"
        write_csv(csv, rows)
        finished = subprocess.run(
            [sys.executable, __file__, str(model_folder), "--predict", str(csv), str(folder / f"out-{rows}")],
            capture_output=True,
            text=True,
            check=True,
        )
        results[rows] = json.loads(finished.stdout.splitlines()[-1])
        shutil.rmtree(folder / f"out-{rows}")
    results["one by one, rows per s"] = one_by_one(model_folder, folder / f"{sizes[0]}.csv", 1000)
    return results


def main():
    """Measure everything and print the results as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, nargs="+", default=[150_000, 1_500_000])
    parser.add_argument("--predict", nargs=2, type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.predict:
        predict(args.model, *args.predict)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(json.dumps({"predict": bench_predict(args.model, folder, args.rows)}, indent=2), flush=True)
        model = write_model(folder / "model", args.megabytes)
        print(json.dumps({"directory": bench_directory(model, folder, args.rounds)}, indent=2), flush=True)
        print(json.dumps({"bucket": bench_bucket(model, args.rounds)}, indent=2), flush=True)


if __name__ == "__main__":
    main()
