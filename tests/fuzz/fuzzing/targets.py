"""The fuzzed readers: for each, well-formed seeds, the words of its format, and its rule."""

import gzip
import io
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from fuzzing.prediction_logs import example, prediction_log, with_content
from slipway.components.errors import SlipwayError
from slipway.components.ingest import hub_client
from slipway.components.ingest.blocks import InputFile
from slipway.components.ingest.column_types import ColumnType, as_type, merge
from slipway.components.ingest.convert import Report, convert
from slipway.components.ingest.example_encoding import ExampleEncoder
from slipway.components.ingest.example_message import parse_example
from slipway.components.ingest.formats import format_of
from slipway.components.ingest.hub_objects import list_objects
from slipway.components.ingest.options import Options
from slipway.components.ingest.planning import plan_tasks
from slipway.components.ingest.query.duck import write_rows
from slipway.components.ingest.query.relations import of_files
from slipway.components.ingest.query.tables import Table
from slipway.components.ingest.storage import fetched, list_files
from slipway.components.ingest.tfrecord import frame, read_records
from slipway.components.pusher.manifest import FileEntry, Manifest
from slipway.components.request_log.prediction_log import read_predictions
from slipway.components.request_log.request_log import logged_line, logged_time
from slipway.components.saved_model.signatures import SERVING_DEFAULT, Signature, TensorInfo
from slipway.components.serving.request_decoding import RequestError, parse_request
from slipway.components.serving.rest_api import route
from slipway.components.serving.strict_json import read_json, refuse_overflow
from slipway.pipeline.config import load_workload

PROJECT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Target:
    """A reader.

    Attributes:
        name: on the command line, and of the folder that keeps its findings.
        seeds: well-formed input.
        hold: reads the input and raises where the rule does not hold.
        tokens: of the format.
    """

    name: str
    seeds: tuple[bytes, ...]
    hold: Callable[[bytes], None]
    tokens: tuple[bytes, ...] = ()


def targets() -> dict[str, Target]:
    """All of them, by name."""
    made = (
        Target("csv", _csv(), _ingests("csv", "in.csv"), (b",", b'""', b'"\n', b";", b"nan", b"0x1", b"1_0")),
        Target("csv_gz", (gzip.compress(_csv()[0], mtime=0),), _ingests("csv", "in.csv.gz")),
        Target("jsonl", _json_lines(), _ingests("jsonl", "in.jsonl"), _JSON),
        Target("parquet", _parquet(), _ingests("parquet", "in.parquet"), (b"PAR1", b"\x15\x00", b"\x19\x1c")),
        Target("arrow", _arrow_files(), _scans, (b"ARROW1", b"\xff\xff\xff\xff", b"\x10\0\0\0\0\0\0\0")),
        Target("tfrecord", _records(), _ingests("tfrecord", "in.tfrecord"), (b"\n\x00", b"\x12\xff\xff")),
        Target(
            "npz", _arrays(), _ingests("npz", "in.npz"), (b"PK\x03\x04", b"'<i8'", b"(9999999,)", b"'|O'")
        ),
        Target(
            "images", _images(), _ingests("images", "cat/in.png"), (b"IHDR", b"\xff\xd8", b"GIF89a", b"BM")
        ),
        Target("workload", _workloads(), _loads, (b": ", b"- ", b"&a ", b"*a", b"!!python/", b"<<: ", b"~")),
        Target("request", _requests(), _asks, _JSON),
        Target("path", _paths(), _routes, (b"%2e", b"..", b"/v1/", b":predict", b"?", b"\\")),
        Target(
            "prediction_log", _prediction_logs(), _reads_predictions, (b"\x0a\x00", b"\x12\x03\x08\x80\x08")
        ),
        Target("manifest", _manifests(), _believes, _JSON),
        Target("hub_listing", _listings(), _lists, (*_JSON, b"../", b"-1", b'"lfs"', b'"directory"')),
    )
    return {target.name: target for target in made}


_JSON = (
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"true",
    b"1e999",
    b'"\\ud800"',
    b"[" * 500,
    b'{"a":' * 200,
)


def _ingests(file_format: str, name: str) -> Callable[[bytes], None]:
    def hold(data: bytes) -> None:
        with _folder() as folder:
            path = folder / "data" / name
            path.parent.mkdir(parents=True)
            path.write_bytes(data)
            pattern = str(folder / "data" / ("*/*" if "/" in name else "*"))
            try:
                _ingest(pattern, Options(format=file_format, max_bad_share=1.0), folder / "out")
            except SlipwayError:
                return

    return hold


def _ingest(pattern: str, options: Options, out: Path) -> None:
    splits = {split: str(out / split) for split in options.split}
    for folder in splits.values():
        Path(folder).mkdir(parents=True)
    report = Report()
    columns = {}
    tasks = plan_tasks({None: list_files(pattern)}, splits, quarantine=str(out), min_shards=1)
    known = options.known({})
    for task in tasks:
        for stored in task.files:
            with fetched(stored) as file:
                columns = merge(columns, format_of(options).infer(file, options, known))
    for task in tasks:
        report.add(
            convert(
                task, options, columns, known=known, open_output=_opened, progress=lambda rows, done: None
            )
        )
    rejected = sum(len(Path(task.quarantine).read_bytes().splitlines()) for task in tasks)
    tally = report.tally
    if tally.rows_in != sum(tally.rows_out.values()) + rejected + tally.unlabelled:
        raise AssertionError(f"{tally.rows_in} rows in, {tally.rows_out} out, {rejected} in the quarantine")
    for split, shards in report.shards.items():
        read = [parse_example(record) for shard in shards for record in _records_of(Path(shard.name))]
        if len(read) != tally.rows_out[split]:
            raise AssertionError(f"{tally.rows_out[split]} rows told in {split}, {len(read)} written")


def _scans(data: bytes) -> None:
    """A query reads an Arrow file, or it is refused; what lies beyond the file's buffers ends the process."""
    with _folder() as folder:
        path, out = folder / "t.arrow", folder / "out"
        path.write_bytes(data)
        out.mkdir()
        try:
            relation = of_files(Table(name="t", kind="files", place=path.name), [path])
            write_rows("SELECT * FROM t", {"t": relation}, folder=out, spill=folder / "spill")
        except SlipwayError:
            return


def _opened(path: str) -> io.BufferedWriter:
    return Path(path).open("wb")


def _records_of(path: Path) -> Iterator[bytes]:
    with gzip.open(path) as stream:
        for _, record in read_records(stream, max_bytes=1 << 30):
            yield record


def _loads(data: bytes) -> None:
    with _folder() as folder:
        path = folder / "workload.yaml"
        path.write_bytes(data)
        try:
            load_workload(path, root=PROJECT)
        except SlipwayError as error:
            if not error.message:
                raise AssertionError("an error without words") from error


_MODEL = {
    SERVING_DEFAULT: Signature(
        inputs={
            "fare": TensorInfo("float", (None, 1)),
            "hour": TensorInfo("int64", (None, 1)),
            "name": TensorInfo("string", (None,)),
        },
        outputs={"answer": TensorInfo("float", (None, 1))},
    )
}


def _asks(data: bytes) -> None:
    try:
        _, _, arrays = parse_request(read_json(data), _MODEL)
        refuse_overflow(data, arrays)
    except RequestError:
        return
    if b"Infinity" not in data and any(
        np.isinf(each).any() for each in arrays.values() if each.dtype != object
    ):
        raise AssertionError("a number became infinite")
    if len({len(array) for array in arrays.values()}) != 1:
        raise AssertionError("inputs of different lengths were taken")


def _routes(data: bytes) -> None:
    method, _, target = data.decode("utf-8", "replace").partition(" ")
    try:
        found = route(method, target, name="taxi")
    except RequestError:
        return
    if "%" in target.partition("?")[0] or ".." in target.partition("?")[0]:
        raise AssertionError(f"{target!r} was taken for {found}")


def _believes(data: bytes) -> None:
    found = Manifest.from_bytes(data)
    if found is not None and found.to_bytes() != data:
        raise AssertionError("a changed manifest was believed")


def _lists(data: bytes) -> None:
    try:
        page = json.loads(data)
    except (ValueError, RecursionError):
        return  # which the client itself refuses
    with patch.object(hub_client, "document", lambda *_: (page, "")):
        try:
            files = list_objects(f"hf://datasets/o/n@{'0' * 40}/*/*.csv")
        except SlipwayError:
            return
    if any("/../" in file.name or file.size_bytes < 0 or not file.checksum for file in files):
        raise AssertionError(f"{data!r} was taken for a listing")


def _reads_predictions(data: bytes) -> None:
    with _folder() as folder:
        (folder / "a").write_bytes(frame([data]))
        for found in read_predictions(InputFile("a", folder / "a"), ["fare", "company"], Counter()):
            if len(found.rows) != len(found.answers):
                raise AssertionError("rows without an answer were taken")
            for row, answer in zip(found.rows, found.answers, strict=True):
                logged_line(logged_time(found.at_s), found.version, row, answer)


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="slipway-fuzz-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _csv() -> tuple[bytes, ...]:
    plain = b"id,fare,company,day\n" + b"".join(
        b'%d,%d.5,"a, ""b""",2024-01-%02d\n' % (row, row, row) for row in range(1, 20)
    )
    return plain, b"a,b\n1,\n,2\n\n3,4\n", b'a\n"x\ny"\n'


def _json_lines() -> tuple[bytes, ...]:
    rows = ({"id": n, "fare": n / 2, "tags": ["a", "b"][: n % 3], "name": f"n{n}"} for n in range(12))
    return (b"".join(json.dumps(row).encode() + b"\n" for row in rows), b'{"a": null}\n{"a": [1, 2]}\n')


def _parquet() -> tuple[bytes, ...]:
    table = pa.table({"id": [1, 2, 3], "x": [0.5, None, 2.0], "t": ["a", "b", None], "l": [[1], [], [2, 3]]})
    made = []
    for options in ({}, {"compression": "gzip", "use_dictionary": False}):
        stream = io.BytesIO()
        pq.write_table(table, stream, **options)
        made.append(stream.getvalue())
    return tuple(made)


def _arrow_files() -> tuple[bytes, ...]:
    table = pa.table({"id": [1, 2, 3], "t": ["a", "b", None], "l": [[1], [], [2, 3]], "c": ["x", "y", "x"]})
    table = table.set_column(3, "c", table["c"].dictionary_encode())
    stream = io.BytesIO()
    with pa.ipc.new_file(stream, table.schema) as file:
        file.write_table(table)
    return (stream.getvalue(),)


def _records() -> tuple[bytes, ...]:
    table = pa.table({"a": [1, 2, 3], "b": [0.5, 1.5, 2.5], "c": ["x", "y", "z"]})
    types = {"a": ColumnType.INT, "b": ColumnType.FLOAT, "c": ColumnType.TEXT}
    typed = {name: as_type(table[name].combine_chunks(), kind)[0] for name, kind in types.items()}
    return (frame(ExampleEncoder(types).encode(typed, table.num_rows).to_pylist()),)


def _prediction_logs() -> tuple[bytes, ...]:
    examples = [example(fare=1.5, company=b"A"), example(fare=2.5)]
    of_columns = {"fare": [1.5, 2.5], "company": [b"A", b"B"]}
    return (
        prediction_log({"examples": examples}, [0.25, 0.5]),
        prediction_log(of_columns, [0.25, 0.5]),
        prediction_log({"fare": [1.5]}, [0.5]),
        with_content([1.5, 2.5]),
    )


def _arrays() -> tuple[bytes, ...]:
    stream = io.BytesIO()
    np.savez(stream, image=np.arange(3 * 16, dtype=np.uint8).reshape(3, 4, 4), label=np.array([0, 1, 0]))
    return (stream.getvalue(),)


def _images() -> tuple[bytes, ...]:
    made = []
    picture = Image.fromarray(np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3))
    for kind in ("PNG", "JPEG", "GIF", "BMP"):
        stream = io.BytesIO()
        picture.save(stream, format=kind)
        made.append(stream.getvalue())
    return tuple(made)


def _workloads() -> tuple[bytes, ...]:
    return tuple((PROJECT / "workloads" / name / "workload.yaml").read_bytes() for name in ("taxi", "digits"))


def _requests() -> tuple[bytes, ...]:
    row = {"fare": [1.5], "hour": [3], "name": "a"}
    binary = {**row, "name": {"b64": "YQ=="}}
    columns = {"fare": [[1.5], [2]], "hour": [[3], [4]], "name": ["a", "b"]}
    documents = ({"instances": [row, binary]}, {"inputs": columns, "signature_name": SERVING_DEFAULT})
    return tuple(json.dumps(document).encode() for document in documents)


def _paths() -> tuple[bytes, ...]:
    return (
        b"POST /v1/models/taxi:predict",
        b"GET /v1/models/taxi/versions/17/metadata",
        b"GET /v1/models/taxi",
    )


def _listings() -> tuple[bytes, ...]:
    small = {"type": "file", "path": "data/a.csv", "size": 12, "oid": "1" * 40}
    large = {"oid": "2" * 64, "size": 5000, "pointerSize": 130}
    folder = {"type": "directory", "path": "data", "size": 0, "oid": "3" * 40}
    page = [folder, small, {**small, "path": "data/b.csv", "size": 5000, "lfs": large, "xetHash": "4" * 64}]
    return (json.dumps(page).encode(),)


def _manifests() -> tuple[bytes, ...]:
    provenance = {"workload": "taxi", "classes": ["no", "yes"], "output_classes": {"tip": ["no", "yes"]}}
    return (Manifest({"saved_model.pb": FileEntry(sha256="0" * 64, bytes=3)}, provenance).to_bytes(),)
