import ast
import importlib.util
import shutil
import subprocess
import sys

import numpy as np
import pytest
from google.protobuf import text_format
from PIL import Image
from tensorflow_metadata.proto.v0 import schema_pb2

from slipway.pipeline.config import load_workload
from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.command import new
from slipway.pipeline.testing import transformed

CLASSES = ('"""; raise SystemExit # {{ 1 }}', "cats of mine", "犬 é 😀")


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "workloads").mkdir()
    return tmp_path


@pytest.fixture
def pictures(root):
    for name in CLASSES:
        (root / "pets" / name).mkdir(parents=True)
        for number in range(12):
            Image.new("L", (12, 10), number).save(root / "pets" / name / f"{number}.png")
    return root / "pets"


def _begin(root, **options):
    def ask(question, answers, *, option):
        raise AssertionError(question)

    given = {"data": "pets", "label": None, "task": "auto", "keep": (), **options}
    return new("pets", root=root, ask=ask, **given)


def _schema(root):
    return text_format.Parse((root / "schemas/pets.pbtxt").read_text(encoding="utf-8"), schema_pb2.Schema())


def test_a_folder_becomes_a_workload_that_loads(root, pictures):
    begun = _begin(root)
    config = load_workload(root / "workloads/pets/workload.yaml", root=root)
    assert (config.data.source, config.data.format, config.data.label) == ("pets", "images", "label")
    assert config.train.images == {"image": (10, 12, 1)}
    assert config.train.hyperparameters["augment"] == {"shift": 0.1, "zoom": 0.1}
    text = (root / "workloads/pets/workload.yaml").read_text()
    assert "Remove this line where place or size\n" in text
    assert begun.text().splitlines()[0] == "36 images of 3 classes."
    assert begun.text().splitlines()[-1].endswith("run pets")


def test_whatever_a_folder_is_called_stays_data(root, pictures):
    begun = _begin(root)
    assert {value for domain in _schema(root).string_domain for value in domain.value} == set(CLASSES)
    for path in begun.files:
        if path.endswith(".py"):
            ast.parse((root / path).read_text(encoding="utf-8"))
    text = (root / "workloads/pets/preprocessing.py").read_text(encoding="utf-8")
    [found] = [
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "CLASSES"
    ]
    assert ast.literal_eval(found) == sorted(CLASSES)


def test_a_folder_that_new_did_not_see_is_not_taken_for_another_class(root, pictures):
    _begin(root)
    module = _preprocessing(root)
    image = (pictures / CLASSES[1] / "3.png").read_bytes()
    rows = [{"image": [image], "label": [name]} for name in (*module.CLASSES, "parrots")]
    found = transformed(module.preprocessing_fn, rows, schema=root / "schemas/pets.pbtxt")
    assert [int(each["label"][0]) for each in found] == [0, 1, 2, -1]


def test_an_npz_becomes_a_workload_with_its_parts_as_splits(root):
    x, y = np.zeros((30, 8, 8, 3), np.uint8), np.arange(30) % 3
    np.savez(root / "pets.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    _begin(root, data="pets.npz")
    config = load_workload(root / "workloads/pets/workload.yaml", root=root)
    assert config.data.split_by.parts == {"train": "train", "eval": "test"}
    assert config.train.images == {"image": (8, 8, 3)}
    image, kind = _schema(root).feature
    assert (image.shape.dim[0].size, image.int_domain.max) == (192, 255)
    assert (kind.name, kind.int_domain.min, kind.int_domain.max) == ("label", 0, 2)


def _preprocessing(root):
    spec = importlib.util.spec_from_file_location("preprocessing", root / "workloads/pets/preprocessing.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("pixels", "kind", "levels"),
    [
        ([0, 200, 16, 7], np.uint8, [0, 200, 16, 7]),
        ([0.0, 0.2, 1.0, 0.5], np.float32, [0, 51, 255, 128]),
        ([0.4, 200.6, 16.0, 7.2], np.float32, [0, 201, 16, 7]),
        ([-1.0, 1.0, 0.0, 0.5], np.float32, [0, 255, 128, 191]),
        ([0.0, 1.0000001, 0.5, 0.2], np.float32, [0, 255, 127, 51]),
        ([-1024, 3071, 0, 1024], np.int16, [0, 255, 64, 128]),
        ([0, 65535, 257, 32768], np.uint16, [0, 255, 1, 128]),
    ],
)
def test_pixels_of_an_npz_fill_a_byte_and_none_is_cut_off(root, pixels, kind, levels):
    x = np.tile(np.array(pixels, kind), (24, 16)).reshape(24, 8, 8)
    np.savez(root / "pets.npz", x_train=x, y_train=np.arange(24) % 2)
    begun = _begin(root, data="pets.npz")
    run = any(note.startswith("The pixels run from ") for note in begun.plan.notes)
    assert run is (min(pixels) < 0 or max(pixels) > 255 or 1 < max(pixels) < 2)
    module = _preprocessing(root)
    column = x[:1].reshape(1, -1).astype(np.float32 if x.dtype.kind == "f" else np.int64)
    found = module.preprocessing_fn({"image": module.tf.constant(column), "label": module.tf.constant([[0]])})
    assert list(found["image"].numpy()[0][:4]) == levels
    image = _schema(root).feature[0]
    domain = image.float_domain if x.dtype.kind == "f" else image.int_domain
    assert domain.min <= min(pixels)
    assert domain.max >= max(pixels)


def test_a_pixel_that_is_no_number_is_refused(root):
    x = np.zeros((24, 8, 8), np.float32)
    x[5, 3, 3] = np.nan
    np.savez(root / "pets.npz", x_train=x, y_train=np.arange(24) % 2)
    with pytest.raises(UsageError, match="x_train holds pixels that are NaN or infinite"):
        _begin(root, data="pets.npz")


def test_divided_folders_keep_their_division(root, pictures):
    (root / "set").mkdir()
    pictures.rename(root / "set" / "train")
    shutil.copytree(root / "set" / "train", root / "set" / "test")
    _begin(root, data="set")
    config = load_workload(root / "workloads/pets/workload.yaml", root=root)
    assert config.data.split_by.files == {"train": "train/*/*", "eval": "test/*/*"}


@pytest.mark.parametrize("file_format", ["images", "npz", "fractions", "centred"])
def test_the_code_needs_no_formatter(root, project, pictures, file_format):
    shutil.rmtree(pictures / CLASSES[0])  # quotes in a name are escaped, and a formatter would rather not
    if file_format != "images":
        values = np.zeros((24, 70, 70), np.uint8 if file_format == "npz" else np.float32)
        values[0, 0, 0] = -1 if file_format == "centred" else 0
        np.savez(root / "a.npz", x_train=values, y_train=np.arange(24) % 2)
    _begin(root, data="pets" if file_format == "images" else "a.npz")
    ours = 'lint.isort.known-first-party = ["slipway", "workloads"]'
    config = ["--config", str(project / "pyproject.toml"), "--config", ours]
    for command in (["check", *config, "--ignore", "INP001"], ["format", "--diff", *config]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command], cwd=root, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            {"label": "kind"},
            "--label kind: images have no columns; the name of its folder is the class of",
        ),
        ({"task": "regression"}, "images have a class, not a number"),
        ({"task": "binary"}, "there are 3 classes"),
        ({"keep": ["colour"]}, "images have no columns"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(root, pictures, options, words):
    with pytest.raises(UsageError, match=words) as refused:
        _begin(root, **options)
    assert refused.value.hint
    assert not (root / "workloads/pets").exists()


def test_a_label_beside_an_npz_is_refused_too(root):
    np.savez(root / "pets.npz", x_train=np.zeros((30, 8, 8), np.uint8), y_train=np.arange(30) % 3)
    with pytest.raises(UsageError, match="y_train holds the class of each"):
        _begin(root, data="pets.npz", label="y_test")


@pytest.mark.parametrize(
    ("names", "words", "hint"),
    [
        (["1.png"], "no folders of images, so their classes are not known", "a folder for each class"),
        (["cats/1.webp"], "holds .webp images; only .jpg", "mogrify -format png"),
        ([], "pets does not exist", "looked for"),
    ],
)
def test_a_folder_that_holds_no_classes_is_refused_with_a_remedy(root, names, words, hint):
    for name in names:
        (root / "pets" / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (12, 10)).save(root / "pets" / name, "PNG")
    with pytest.raises(UsageError, match=words) as refused:
        _begin(root)
    assert hint in refused.value.hint


def test_a_folder_whose_name_is_a_pattern_is_refused_as_a_run_would(root, pictures):
    pictures.rename(root / "pets [2]")
    with pytest.raises(UsageError, match="for a pattern"):
        _begin(root, data="pets [2]")
