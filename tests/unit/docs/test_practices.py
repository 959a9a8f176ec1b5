"""docs/practices.md: each practice has a key, a page and a test function, and each of them exists."""

import ast
import json
import re

import pytest

HEAD = "| practice or system | key | page | test |"
# What the seeds of the project name; each stands in a row of the table.
PRACTICES = (
    "TPUEstimator",
    "TPUClusterResolver",
    "TPUStrategy",
    "Colab",
    "memory growth",
    "batching",
    "shuffling",
    "compression",
    "caching",
    "prefetch",
    "mixed precision",
    "gradient accumulation",
    "distributed training",
    "data parallelism",
    "model parallelism",
    "quantization",
    "checkpoints",
    "monitoring",
    "TensorBoard",
    "model architecture",
    "hyperparameters",
    "augmentation",
    "Cloud Storage",
    "BigQuery",
    "choosing the TPU",
    "automatic differentiation",
    "AutoML",
    "PyTorch",
    "MNIST",
    "APIs",
    "validation of the model",
    "batches instead of single instances",
    "inference on TPUs",
    "cost",
    "convolutions",
    "libraries made for TPUs",
    "CUDA",
    "unnecessary computations",
    "scalability",
    "Keras API",
)


@pytest.fixture(scope="module")
def rows(project):
    text = (project / "docs/practices.md").read_text(encoding="utf-8")
    lines = text.partition(HEAD)[2].split("\n\n", 1)[0].strip().splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_practice_of_the_seeds_has_a_row(rows):
    practices = " ".join(practice for practice, *_ in rows)
    assert [name for name in PRACTICES if name not in practices] == []


def test_every_page_that_is_named_has_the_section(rows, project):
    for practice, _, page, _ in rows:
        [(name, anchor)] = re.findall(r"\]\(([\w-]+\.md)(?:#([\w-]+))?\)", page)
        text = (project / "docs" / name).read_text(encoding="utf-8")
        titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") for title in titles}
        assert not anchor or anchor in anchors, f"{practice}: {page}"


def test_every_test_that_is_named_is_a_function_of_one_file(rows, project):
    for practice, _, _, test in rows:
        named = re.findall(r"`([\w/]+\.py)(?:::(test_\w+))?`", test)
        assert named, practice
        for file, function in named:
            [path] = (project / "tests").rglob(file)
            defined = {
                each.name
                for each in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
                if isinstance(each, ast.FunctionDef)
            }
            assert function in defined, f"{practice}: {file}::{function}"


def test_every_key_that_is_named_exists(rows, project):
    schema = json.loads((project / "schemas/workload.schema.json").read_text(encoding="utf-8"))
    definitions = schema["$defs"]
    known = {*schema["properties"], *definitions["TrainConfig"]["properties"]}
    sections = {
        f"{key}.{name}"
        for key, section in (
            ("input", "InputSettings"),
            ("checkpoint", "CheckpointSettings"),
            ("data", "DataConfig"),
            ("transform", "TransformConfig"),
        )
        for name in definitions[section]["properties"]
    }
    for practice, key, _, _ in rows:
        if practice in ("TPUEstimator", "monitoring: memory, processor, throughput, input"):
            continue  # in prose, and a command
        keys = re.sub(r" \(.*?\)", "", key).partition(";")[0]  # in brackets what they hold, then a command
        names = re.findall(r"`([^`]+)`", keys)
        missing = [n for n in names if n.partition(":")[0] not in known | sections]
        assert missing == [], practice
