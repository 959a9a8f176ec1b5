import pytest

from slipway.components.preflight.padding import padded, wastes
from slipway.components.preflight.question_and_answer import Layer


@pytest.mark.parametrize(("size", "expected"), [(1, 128), (128, 128), (129, 256)])
def test_padded_is_the_next_multiple(size, expected):
    assert padded(size, 128) == expected


@pytest.mark.parametrize(
    ("units", "unit", "better", "share"),
    [(130, 128, 128, 1 - 130 / 256), (200, 128, 256, 1 - 200 / 256), (64, 128, 128, 0.5)],
)
def test_a_badly_filled_layer_is_named_with_the_size_that_fills_it(units, unit, better, share):
    (found,) = wastes([Layer(name="a", kind="Dense", matrices=((512, units),))], unit=unit)

    assert (found.layer, found.units, found.better) == ("a", units, better)
    assert found.share == pytest.approx(share)


@pytest.mark.parametrize(
    ("rows", "units", "share"),
    # As the TPU's compiler holds them: 130 as 136, 64 without loss; a few rows fill neither side of a tile.
    [(8192, 130, 1 - 130 / 136), (8192, 64, 0.0), (11, 64, 1 - 11 * 64 / (16 * 128))],
)
def test_memory_is_lost_as_the_matrix_lies_best(rows, units, share):
    (found,) = wastes([Layer(name="a", kind="Dense", matrices=((rows, units),))], unit=128)

    assert found.memory_share == pytest.approx(share)


def test_filters_of_a_convolution_are_its_units_and_its_other_sizes_the_rows_of_its_matrix():
    narrow = Layer(name="a", kind="Conv2D", matrices=((3, 3, 64, 96),), positions=56 * 56)
    wide = Layer(name="b", kind="Conv2D", matrices=((3, 3, 96, 256),), positions=56 * 56)

    (found,) = wastes([narrow, wide], unit=128)

    assert (found.layer, found.units, found.better, found.share) == ("a", 96, 128, 0.25)
    assert found.memory_share == pytest.approx(1 - 576 / 640)  # 96 x 576, in tiles of 8 x 128
    assert found.model_share == pytest.approx(64 * 96 / (64 * 96 + 96 * 256))


def test_a_frozen_layer_is_left_alone_but_counts_and_a_layer_is_as_wide_as_its_largest_matrix():
    frozen = Layer(name="a", kind="Dense", matrices=((512, 100),), is_frozen=True)
    adapted = Layer(name="b", kind="Dense", matrices=((512, 4), (4, 96), (512, 96)))

    (found,) = wastes([frozen, adapted], unit=128)

    assert (found.layer, found.units) == ("b", 96)
    assert found.model_share == pytest.approx(1 - 51200 / (51200 + 2048 + 384 + 49152))


@pytest.mark.parametrize("units", [128, 256, 512, 1000, 1024])
def test_a_well_filled_layer_is_left_alone(units):
    assert wastes([Layer(name="a", kind="Dense", matrices=((512, units),))], unit=128) == []


def test_output_layers_embeddings_and_small_layers_are_left_alone():
    layers = [
        Layer(name="tokens", kind="Embedding", matrices=((30000, 60),)),
        Layer(name="large", kind="Dense", matrices=((1024, 1024),)),
        Layer(name="small", kind="Dense", matrices=((1024, 10),)),
        Layer(name="output", kind="Dense", matrices=((1024, 1000000),), is_output=True),
    ]

    assert wastes(layers, unit=128) == []


def test_heads_of_an_attention_count_together():
    query = Layer(name="query", kind="EinsumDense", matrices=((128, 2, 64),))

    assert wastes([query], unit=128) == []
    assert wastes([query], unit=256)[0].units == 128
