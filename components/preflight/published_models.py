"""The models whose steps others have timed, and what a step of each computes and moves at least. Pure.

Their sizes are from where `published_steps` has the times.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from slipway.components.preflight.question_and_answer import Compiled

Kind = Literal["attention", "convolution"]


@dataclass(frozen=True, kw_only=True)
class Transformer:
    """The sizes of a model with attention, from which its operations follow.

    Attributes:
        width: width of the residual stream.
        hidden: width of the feed-forward layers.
        kv_heads: number of heads of keys and values.
        matrices: number of matrices in a feed-forward layer: three if it is gated.
        is_causal: whether positions attend only to earlier ones, which halves the products of attention.
        predicted: share of positions whose logits are computed.
    """

    name: str
    layers: int
    width: int
    hidden: int
    heads: int
    kv_heads: int
    vocabulary: int
    head_size: int = 128
    matrices: int = 3
    is_causal: bool = True
    predicted: float = 1.0
    kind: ClassVar[Kind] = "attention"

    @property
    def weights(self) -> int:
        """The number of weights in the layers' matrices, without the embedding, which multiplies nothing."""
        attention = self.width * self.head_size * (2 * self.heads + 2 * self.kv_heads)
        return self.layers * (attention + self.matrices * self.width * self.hidden)

    def flops(self, sequence: int, *, counted: float | None = None) -> float:
        """Return the operations of a step for one sequence, forward and backward, without recomputation.

        They are six per weight and position, plus the products of attention. Sources: A. Chowdhery et al.,
        PaLM, JMLR 24, 2023, appendix B; MaxText, `calculate_tflops_training_per_device`.

        Args:
            sequence: the length of the sequence, in positions.
            counted: the share of the products of attention that counts, 0 to 1; None for half of them if
                attention is causal, which a kernel can achieve, and for all of them if not. MaxText counted
                none of them until June 2023, all until November 2023, half until May 2024, all until July
                2025, and half since.
        """
        share = (0.5 if self.is_causal else 1.0) if counted is None else counted
        logits = self.predicted * self.width * self.vocabulary
        attention = 12.0 * self.layers * self.heads * self.head_size * sequence
        return sequence * (6 * (self.weights + logits) + share * attention)

    def counted(self, *, batch_size: int, sequence: int, devices: int) -> Compiled:
        """Return the least that one device computes and moves in a step.

        The bytes moved are those of the weights only, read twice and written once at two bytes each: the rest
        depends on how the model is divided. These trainings are compute-bound by far.
        """
        flops = batch_size * self.flops(sequence) / devices
        return Compiled(batch_size=batch_size, flops=flops, moved_bytes=6 * self.weights / devices)


@dataclass(frozen=True, kw_only=True)
class Convolutions:
    """A model of convolutions, whose step was compiled for one device's share of the batch.

    Attributes:
        flops: operations of one device and step, as counted by the preflight's own compiling process.
        moved_bytes: bytes that one device reads and writes in a step, counted likewise.
        collective_bytes: bytes of the results of one device's collectives in a step, counted likewise.
    """

    name: str
    flops: float
    moved_bytes: float
    collective_bytes: int
    kind: ClassVar[Kind] = "convolution"

    def counted(self, *, batch_size: int, sequence: int, devices: int) -> Compiled:  # noqa: ARG002
        """Return what one device computes and moves in a step.

        Its only collective, the sum of the gradients, is left out: how the chips lay is mostly not known, and
        the memory's traffic takes tens of times as long.
        """
        return Compiled(
            batch_size=batch_size,
            flops=self.flops,
            moved_bytes=self.moved_bytes,
            collective_bytes=self.collective_bytes,
        )


def _llama(name: str, layers: int, width: int, hidden: int, heads: int, vocabulary: int) -> Transformer:
    """Return a model with the structure of Llama: eight heads of keys and values; Mistral 7B has it, too."""
    return Transformer(
        name=name, layers=layers, width=width, hidden=hidden, heads=heads, kv_heads=8, vocabulary=vocabulary
    )


def maxtext(scale: int, layers: int, width: int, hidden: int, heads: int) -> Transformer:
    """Return a model of MaxText in 2023: heads of 256, and two matrices in a feed-forward layer."""
    return Transformer(
        name=f"MaxText {scale}B",
        layers=layers,
        width=width,
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_size=256,
        vocabulary=32768,
        matrices=2,
    )


def scaled_maxtext(scale: int) -> Transformer:
    """Return MaxText's base.yml of 2023 at a global_parameter_scale, as its get_individual_scales does.

    Args:
        scale: a power of two, which is the number of weights in about billions.
    """
    cycles, rest = divmod(scale.bit_length() - 1, 3)
    wider = cycles + (rest > 0)
    return maxtext(scale, 16 << cycles, 2560 << cycles + (rest > 1), 8192 << wider, 8 << wider)


LLAMA_8B = _llama("Llama 3.1 8B", 32, 4096, 14336, 32, 128256)
LLAMA_70B = _llama("Llama 3.1 70B", 80, 8192, 28672, 64, 128256)
LLAMA_405B = _llama("Llama 3.1 405B", 126, 16384, 53248, 128, 128256)
LLAMA_2_70B = _llama("Llama 2 70B", 80, 8192, 28672, 64, 32000)
LLAMA_2_7B = replace(_llama("Llama 2 7B", 32, 4096, 11008, 32, 32000), kv_heads=32)
FUJI_7B = replace(LLAMA_2_7B, name="AXLearn fuji 7B", vocabulary=32768)
MISTRAL_7B = _llama("Mistral 7B", 32, 4096, 14336, 32, 32000)
GPT_3 = Transformer(
    name="GPT-3 175B",
    layers=96,
    width=12288,
    hidden=49152,
    heads=96,
    kv_heads=96,
    vocabulary=50304,
    matrices=2,
)
GPT_J = Transformer(
    name="GPT-J 6B",
    layers=28,
    width=4096,
    hidden=16384,
    heads=16,
    kv_heads=16,
    head_size=256,
    vocabulary=50400,
    matrices=2,
)
BERT_LARGE = Transformer(
    name="BERT large",
    layers=24,
    width=1024,
    hidden=4096,
    heads=16,
    kv_heads=16,
    head_size=64,
    vocabulary=30522,
    matrices=2,
    is_causal=False,
    predicted=76 / 512,
)
# The numbers of all weights are published beside these two: 199,717,148,096 and 481,815,347,200.
BERT_200B = replace(
    BERT_LARGE,
    name="BERT-like 200B",
    layers=66,
    width=12288,
    hidden=98304,
    heads=128,
    kv_heads=128,
    head_size=96,
    vocabulary=32000,
)
BERT_480B = replace(
    BERT_LARGE,
    name="BERT-like 480B",
    layers=64,
    width=16384,
    hidden=131072,
    heads=256,
    kv_heads=1,
    head_size=128,
    matrices=3,
)


def _resnet(flops: float, moved_bytes: float) -> Convolutions:
    """Return Keras' ResNet50 with 224 x 224 pixels, SGD with momentum, mixed_bfloat16; libtpu 0.0.42.1."""
    return Convolutions(name="ResNet-50", flops=flops, moved_bytes=moved_bytes, collective_bytes=51682772)


# 128 and 32 images per device; with 32 images the counts are equal for v2 and v3.
RESNET_V2_128 = _resnet(2883208347648.0, 41924374528.0)
RESNET_V3_128 = _resnet(2881564180480.0, 41924366336.0)
RESNET_32 = _resnet(720910614528.0, 13070311424.0)
