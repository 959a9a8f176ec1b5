import numpy as np
import pytest
from PIL import Image

from slipway.components.errors import ComponentError
from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.images.inspection import existing_splits, holds_images, inspect_images


@pytest.fixture
def picture(tmp_path):
    def write(name, *, size=(20, 10), mode="RGB"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new(mode, size).save(path)
        return path

    return write


@pytest.fixture
def arrays(tmp_path):
    def write(**given):
        np.savez(tmp_path / "set.npz", **given)
        return tmp_path / "set.npz"

    return write


def test_classes_sizes_and_colours_of_a_folder_are_counted(picture, tmp_path):
    picture("cats of mine/1.png")
    picture("cats of mine/2.png", size=(8, 9), mode="L")
    picture("犬/1.jpg")
    found = inspect_images(tmp_path)
    assert found.classes == {"cats of mine": 2, "犬": 1}
    assert found.sizes == {(10, 20): 2, (9, 8): 1}
    assert found.modes == {"colour": 2, "grey": 1}
    assert (found.unreadable_count, found.is_whole, found.parts) == (0, True, {})


def test_a_broken_image_is_named_with_its_reason_and_not_counted(picture, tmp_path):
    picture("cats/1.png")
    whole = picture("dogs/1.png", size=(200, 200)).read_bytes()
    (tmp_path / "dogs" / "2.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "dogs" / "notes.txt").write_text("of the vet")
    found = inspect_images(tmp_path)
    assert found.classes == {"cats": 1, "dogs": 1}
    assert [name for name, _ in found.unreadable] == ["dogs/2.png", "dogs/notes.txt"]
    assert dict(found.unreadable)["dogs/notes.txt"] == "of no known format"
    assert (found.images, found.unreadable_count) == (2, 2)


def test_images_that_a_viewer_turns_are_counted(picture, tmp_path):
    picture("cats/1.png")
    exif = Image.Exif()
    for name, orientation in (("2.jpg", 1), ("3.jpg", 6), ("4.png", 3)):
        exif[0x0112] = orientation
        Image.new("RGB", (20, 10)).save(tmp_path / "cats" / name, exif=exif)
    assert inspect_images(tmp_path).turned == 2


def test_exif_that_says_nothing_or_is_damaged_turns_no_image(tmp_path):
    (tmp_path / "cats").mkdir()
    exif = Image.Exif()
    exif[0x0112] = 0  # some cameras write it for "unknown"
    for name, written in (("1.jpg", exif), ("2.png", b"damaged"), ("3.jpg", b"Exif\0\0II")):
        Image.new("RGB", (20, 10)).save(tmp_path / "cats" / name, exif=written)
    found = inspect_images(tmp_path)
    assert (found.images, found.turned) == (3, 0)


def test_hidden_files_are_passed_over_as_by_ingest(picture, tmp_path):
    picture("cats/1.png")
    picture("dogs/1.png")
    (tmp_path / "dogs" / ".DS_Store").write_bytes(b"x")
    picture(".thumbs/1.png")
    assert inspect_images(tmp_path).classes == {"cats": 1, "dogs": 1}


def test_what_lies_elsewhere_is_reported(picture, tmp_path):
    picture("cats/1.png")
    picture("dogs/young/1.png")
    picture("stray.png")
    told = " ".join(inspect_images(tmp_path).ignored)
    assert "such as stray.png: without a class folder" in told
    assert "dogs contains folders" in told


def test_a_divided_set_keeps_its_division(picture, tmp_path):
    for part in ("train", "test", "val"):
        for name in ("cats", "dogs"):
            picture(f"{part}/{name}/1.png")
    assert existing_splits(tmp_path) == {"train": "train", "eval": "val"}
    found = inspect_images(tmp_path)
    assert found.classes == {"cats": 2, "dogs": 2}
    assert found.ignored == ("test is left out: one folder is for training and one for evaluation.",)


def test_only_some_of_many_images_are_opened(picture, tmp_path):
    for number in range(30):
        picture(f"{'cats' if number % 2 else 'dogs'}/{number}.png")
    found = inspect_images(tmp_path, most_images=10)
    assert sum(found.sizes.values()) == 10
    assert found.classes == {"cats": 15, "dogs": 15}
    assert not found.is_whole


@pytest.mark.parametrize(
    ("name", "is_images"), [("cats/1.PNG", True), ("cats/1.csv", False), ("1.png", False)]
)
def test_images_in_folders_are_distinguished_from_tables(tmp_path, name, is_images):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"")
    assert holds_images(tmp_path) == is_images


@pytest.mark.parametrize(
    ("shape", "size", "mode"),
    [((6, 5, 4), (5, 4), "grey"), ((6, 5, 4, 3), (5, 4), "colour"), ((6, 25), (5, 5), "grey")],
)
def test_arrays_tell_their_size(arrays, shape, size, mode):
    found = inspect_images(arrays(x_train=np.full(shape, 7, np.uint8), y_train=np.arange(6) % 2))
    assert found.sizes == {size: 6}
    assert found.modes == {mode: 6}
    assert found.classes == {0: 3, 1: 3}
    assert (found.lowest, found.highest, found.has_fractions) == (7, 7, False)


def test_parts_of_an_npz_are_the_splits(arrays):
    x, y = np.zeros((4, 3, 3)), np.arange(4) % 2
    found = inspect_images(arrays(x_train=x, y_train=y, x_test=x + 1, y_test=y))
    assert found.parts == {"train": "train", "eval": "test"}
    assert (found.has_fractions, found.highest) == (True, 1.0)


def test_arrays_that_are_no_images_are_refused(arrays):
    with pytest.raises(UsageError, match="which is not an array of images"):
        inspect_images(arrays(x_train=np.zeros((4, 7), np.uint8), y_train=np.zeros(4, np.uint8)))
    with pytest.raises(UsageError, match="are fractions"):
        inspect_images(arrays(x_train=np.zeros((4, 3, 3)), y_train=np.zeros(4)))
    with pytest.raises(ComponentError, match="holds no x_train"):
        inspect_images(arrays(pictures=np.zeros((4, 3, 3))))
