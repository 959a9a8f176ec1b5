import pytest

from slipway.pipeline.errors import UsageError
from slipway.pipeline.start.images.deciding import decide
from slipway.pipeline.start.images.inspection import ImageFacts


def _plan(**given):
    classes = given.pop("classes", {"cats": 300, "dogs": 310})
    total = sum(classes.values())
    known = {"file_format": "images", "sizes": {(28, 28): total}, "modes": {"grey": total}, **given}
    return decide(ImageFacts(classes=classes, **known), label="label", data="pets")


def test_small_images_keep_their_size_and_get_the_small_network():
    plan = _plan()
    assert (plan.height, plan.width, plan.channels, plan.network) == (28, 28, 1, "cnn")
    assert plan.task == "binary"
    assert plan.max_bad_share is None
    assert plan.notes == ()


def test_large_images_are_scaled_down_in_their_proportions():
    plan = _plan(sizes={(400, 600): 600, (4000, 6000): 10}, modes={"colour": 610})
    assert (plan.height, plan.width, plan.channels, plan.network) == (64, 96, 3, "residual")
    assert "from 400 to 6000 pixels" in plan.reasons["size"]


def test_images_of_an_npz_are_not_scaled():
    plan = _plan(file_format="npz", classes={0: 300, 1: 300, 2: 300}, sizes={(128, 128): 900})
    assert (plan.height, plan.width, plan.network, plan.task) == (128, 128, "residual", "multiclass")


@pytest.mark.parametrize(
    ("modes", "channels"),
    [({"grey": 5}, 1), ({"grey": 4, "colour": 1}, 3), ({"colour with transparency": 5}, 3)],
)
def test_one_coloured_image_makes_all_coloured(modes, channels):
    assert _plan(modes=modes).channels == channels


def test_few_images_get_small_batches_and_small_ones_as_many_updates():
    few, many = _plan(classes={"a": 30, "b": 30}), _plan(classes={"a": 30_000, "b": 30_000})
    assert (few.batch_size, few.epochs) == (8, 100)
    assert (many.batch_size, many.epochs) == (128, 5)
    epochs = [
        _plan(classes={"a": 900, "b": 900}, sizes={side: 1800}).epochs
        for side in ((28, 28), (64, 64), (65, 65))
    ]
    assert epochs == [100, 26, 26]


def test_broken_images_are_reported_and_do_not_stop_the_first_run():
    plan = _plan(unreadable=(("cats/7.png", "image file is truncated"),), unreadable_count=1)
    assert plan.max_bad_share == 0.01
    assert "1 image cannot be read: cats/7.png (image file is truncated)" in plan.notes[0]


def test_images_that_only_viewers_turn_are_told():
    assert _plan(turned=1).notes[0].startswith("1 image is stored on the side, upside down or mirrored")


def test_uneven_and_rare_classes_are_reported():
    told = " ".join(_plan(classes={"cats": 500, "lynx": 1}).notes)
    assert "uneven: 500 images of cats, 1 of lynx" in told
    assert "Fewer than 20 images of lynx" in told


def test_a_class_without_a_readable_image_is_none():
    plan = _plan(classes={"cats": 50, "dogs": 50, "eels": 0}, unreadable_count=2)
    assert plan.classes == ("cats", "dogs")
    assert any("Not a class" in note and "eels" in note for note in plan.notes)


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        ({"cats": 3}, "pets holds images of one class, cats: there is nothing to distinguish"),
        ({"cats": 10, "dogs": 9}, "19 images are too few"),
        ({"cats": 0}, "pets holds no image that can be read"),
        ({str(number): 1 for number in range(1001)}, "1,001 classes"),
    ],
)
def test_what_cannot_be_distinguished_is_refused_with_a_hint(classes, words):
    with pytest.raises(UsageError, match=words) as refused:
        _plan(classes=classes)
    assert refused.value.hint
