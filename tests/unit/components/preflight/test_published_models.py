"""The operations and the numbers of weights of the models that others have timed."""

from dataclasses import replace

import pytest

from slipway.components.preflight.expected import LEAST_ATTENTION
from slipway.components.preflight.published_models import BERT_200B, BERT_480B, Transformer, scaled_maxtext
from slipway.components.preflight.published_steps import PUBLISHED

TRANSFORMERS = {
    row.network.name: row.network for row in PUBLISHED if isinstance(row.network, Transformer)
}.values()


def with_embedding(network):
    """The number of weights, with one embedding, which the logits share."""
    return network.weights + network.width * network.vocabulary


def test_operations_of_a_transformer_are_six_for_each_weight_and_those_of_attention():
    tiny = Transformer(
        name="tiny", layers=2, width=8, hidden=32, heads=2, kv_heads=1, head_size=4, vocabulary=16
    )
    # Query and output 8 x 8, key and value 8 x 4, three matrices 8 x 32; logits 8 x 16.
    weights = 2 * (2 * 64 + 2 * 32 + 3 * 256)

    assert tiny.weights == weights
    # Scores and sums, 2 x 2 x 4 x 10 each, three times, of two layers; half of them are of later positions.
    assert tiny.flops(10) == 10 * (6 * (weights + 128) + 2 * 3 * 4 * 8 * 10 / 2)
    both_ways = replace(tiny, is_causal=False)
    assert both_ways.flops(10) == tiny.flops(10, counted=1)
    assert tiny.flops(10, counted=0) == 10 * 6 * (weights + 128)


@pytest.mark.parametrize(
    ("scale", "sizes"),
    [
        (16, (32, 5120, 32768, 32)),
        (32, (32, 10240, 32768, 32)),
        (64, (64, 10240, 32768, 32)),
        (128, (64, 10240, 65536, 64)),
        (256, (64, 20480, 65536, 64)),
        (512, (128, 20480, 65536, 64)),
        (1024, (128, 20480, 131072, 128)),
    ],
)
def test_models_of_maxtext_have_the_sizes_of_the_commit_that_published_their_rates(scale, sizes):
    found = scaled_maxtext(scale)

    assert (found.layers, found.width, found.hidden, found.heads) == sizes


@pytest.mark.parametrize("network", TRANSFORMERS, ids=lambda network: network.name)
def test_a_model_has_the_weights_in_its_name(network):
    size = network.name.split()[-1]
    named = 0.34 if size == "large" else float(size.removesuffix("B"))

    assert with_embedding(network) / 1e9 == pytest.approx(named, rel=0.07 if named > 1 else 0.03)


@pytest.mark.parametrize(("network", "published"), [(BERT_200B, 199717148096), (BERT_480B, 481815347200)])
def test_the_models_of_mlperfs_open_division_have_the_weights_that_are_published(network, published):
    assert with_embedding(network) == pytest.approx(published, rel=1e-4)


def test_no_model_has_less_attention_than_what_counts_as_like_them():
    def share(network):
        attention = replace(network, hidden=0).weights
        return attention / network.weights

    least = min(TRANSFORMERS, key=share)

    assert (least.name, round(share(least), 2)) == ("BERT-like 480B", 0.14)
    assert share(least) > LEAST_ATTENTION
