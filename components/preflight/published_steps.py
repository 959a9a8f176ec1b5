"""Step times of trainings on TPUs, as measured and published by others: one row per training. Pure.

Each time was read in the repository that its source names, in November 2026; so was the precision, unless it
is "not stated".

    [Trillium]: AI-Hypercomputer/tpu-recipes, commit c8cfe2f: training/trillium/NAME-MaxText/README.md, or the
        README in the folder after the comma: the log line that it shows. Synthetic data, no checkpoints.
    [Ironwood]: the same repository, the table of training/ironwood/README.md.
    [MaxText]: AI-Hypercomputer/maxtext, commit 76bd53b0f of December 2023: MaxText/configs/v5e/README.md, row
        "1x v5e-256"; batch and sequence from the .sh beside it, the rest from base.yml. It gives no times:
        they follow from the MFU. Later commits repeat the MFU, but their base.yml describes other models.
    [MLPerf 0.5], [MLPerf 0.6], [MLPerf 0.7]: mlcommons/training_results_v0.5, v0.6 and v0.7, Google's logs:
        v0.5.0/google/cloud_NAME/.../results/tpu/resnet/result_0.txt, Google/results/tpu-NAME/resnet/ and
        .../bert/: the median time of the blocks after the first, divided by the steps in a block. Blocks of
        0.6 include an evaluation.
    [DAWNBench]: stanford-futuredata/dawn-bench-entries, ImageNet/train/google_resnet50_tpu_tensorflow111.tsv,
        September 2018, and ...tensorflow18.tsv, April 2018: the hours at epoch 90 less those at epoch 1,
        including evaluations and checkpoints.
    [Flax]: google/flax, commit 18f8f311, examples/imagenet/README.md: the hours for 125,100 steps, including
        all that is not a step; configs/tpu.py for the batch.
    [GPT-J]: kingoflolz/mesh-transformer-jax, commit f8315e3: README, "Fine-tuning": "~5000 tokens/second";
        howto_finetune.md for the batch.

No number of this table was measured by us. docs/tpu.md says what was left out, and why.
"""

from dataclasses import dataclass
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

        Of the bytes moved, only the weights are counted, read twice and written once at two bytes each: the
        rest depends on how the model is divided. These rows are compute-bound by far.
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


@dataclass(frozen=True)
class PublishedStep:
    """One published training.

    Attributes:
        slice: the generation, a key of `chip_specs.CHIPS`, and the number of devices: two per chip on v2, v3
            and v7.
        batch_size: the global batch size, in examples or sequences.
        sequence: the length of a sequence, in positions; 0 for images.
        source: the source, as the module's docstring names it.
        rate: the operations per second of a chip, if they were published as well; None if not.
    """

    network: Transformer | Convolutions
    slice: str
    batch_size: int
    sequence: int
    step_s: float
    source: str
    rate: float | None = None
    precision: str = "bfloat16"

    @property
    def generation(self) -> str:
        """The generation of the chips."""
        return self.slice.partition("-")[0]

    @property
    def devices(self) -> int:
        """The number of devices, as JAX counts them."""
        return int(self.slice.partition("-")[2])

    @property
    def counted(self) -> Compiled:
        """The least that one device computes, moves and sends in a step."""
        return self.network.counted(batch_size=self.batch_size, sequence=self.sequence, devices=self.devices)


def _llama(name: str, layers: int, width: int, hidden: int, heads: int, vocabulary: int) -> Transformer:
    """Return a model with the structure of Llama: eight heads of keys and values; Mistral 7B has it, too."""
    return Transformer(
        name=name, layers=layers, width=width, hidden=hidden, heads=heads, kv_heads=8, vocabulary=vocabulary
    )


def _scaled(scale: int) -> Transformer:
    """Return MaxText's base.yml of 2023 at a global_parameter_scale, as its get_individual_scales does.

    Args:
        scale: a power of two, which is the number of weights in about billions.
    """
    cycles, rest = divmod(scale.bit_length() - 1, 3)
    heads = 8 << cycles + (rest > 0)
    return Transformer(
        name=f"MaxText {scale}B",
        layers=16 << cycles,
        width=2560 << cycles + (rest > 1),
        hidden=1024 * heads,
        heads=heads,
        kv_heads=heads,
        head_size=256,
        vocabulary=32768,
        matrices=2,
    )


_LLAMA_8B = _llama("Llama 3.1 8B", 32, 4096, 14336, 32, 128256)
_LLAMA_70B = _llama("Llama 3.1 70B", 80, 8192, 28672, 64, 128256)
_LLAMA_405B = _llama("Llama 3.1 405B", 126, 16384, 53248, 128, 128256)
_LLAMA_2_70B = _llama("Llama 2 70B", 80, 8192, 28672, 64, 32000)
_MISTRAL_7B = _llama("Mistral 7B", 32, 4096, 14336, 32, 32000)
_GPT_3 = Transformer(
    name="GPT-3 175B",
    layers=96,
    width=12288,
    hidden=49152,
    heads=96,
    kv_heads=96,
    vocabulary=50304,
    matrices=2,
)
_GPT_J = Transformer(
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
_BERT_LARGE = Transformer(
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


def _resnet(flops: float, moved_bytes: float) -> Convolutions:
    """Return Keras' ResNet50 with 224 x 224 pixels, SGD with momentum, mixed_bfloat16; libtpu 0.0.42.1."""
    return Convolutions(name="ResNet-50", flops=flops, moved_bytes=moved_bytes, collective_bytes=51682772)


# 128 and 32 images per device; with 32 images the counts are equal for v2 and v3.
_RESNET_V2_128 = _resnet(2883208347648.0, 41924374528.0)
_RESNET_V3_128 = _resnet(2881564180480.0, 41924366336.0)
_RESNET_32 = _resnet(720910614528.0, 13070311424.0)


def _of_mfu(scale: int, batch_size: int, mfu: float) -> PublishedStep:
    """Return a row of [MaxText]: its time follows from the MFU, v5e's peak of 197e12 and the full count."""
    network, rate = _scaled(scale), mfu * 197e12
    step_s = batch_size * network.flops(2048, counted=1) / 256 / rate
    return PublishedStep(network, "v5e-256", batch_size, 2048, step_s, f"[MaxText] {scale}b.sh", rate)


def _of_epochs(seconds: float, epochs: int, batch_size: int) -> float:
    """Return the time of a step, given that of some epochs of ImageNet."""
    return seconds / (epochs * 1_281_167 / batch_size)


# network, slice, batch, positions, seconds, source, rate
PUBLISHED: tuple[PublishedStep, ...] = (
    _of_mfu(16, 6 * 256, 0.6110),
    _of_mfu(32, 4 * 256, 0.6686),
    _of_mfu(64, 2 * 256, 0.5990),
    _of_mfu(128, 256, 0.5606),
    PublishedStep(_LLAMA_8B, "v6e-8", 24, 8192, 3.443, "[Trillium] Llama3.1-8B, v6e-8", 413.433e12),
    PublishedStep(_LLAMA_8B, "v6e-256", 1024, 8192, 4.546, "[Trillium] Llama3.1-8B, v6e-256", 417.397e12),
    PublishedStep(_MISTRAL_7B, "v6e-8", 48, 8192, 6.320, "[Trillium] Mistral-7B", 431.981e12),
    PublishedStep(_LLAMA_70B, "v6e-32", 64, 8192, 17.790, "[Trillium] Llama3.1-70B, v6e-32", 443.385e12),
    PublishedStep(_LLAMA_70B, "v6e-256", 1280, 8192, 42.656, "[Trillium] Llama3.1-70B, v6e-256", 462.297e12),
    PublishedStep(_LLAMA_2_70B, "v6e-256", 512, 4096, 9.052, "[Trillium] Llama2-70B", 402.274e12),
    PublishedStep(_GPT_3, "v6e-256", 768, 2048, 17.182, "[Trillium] GPT3-175B, bf16", 384.891e12),
    PublishedStep(_LLAMA_70B, "v7-128", 256, 8192, 12.20, "[Ironwood] llama3.1-70b, 64 chips", 1207.05e12),
    PublishedStep(_LLAMA_70B, "v7-512", 1024, 8192, 12.27, "[Ironwood] llama3.1-70b, 256 chips", 1199.67e12),
    PublishedStep(_LLAMA_405B, "v7-512", 1536, 8192, 98.34, "[Ironwood] llama3.1-405b", 1261.40e12),
    PublishedStep(_BERT_LARGE, "v3-32", 448, 512, 0.4603, "[MLPerf 0.7] v3-32-TF2.0"),
    PublishedStep(_GPT_J, "v3-8", 16, 2048, 16 * 2048 / 5000, "[GPT-J]"),
    PublishedStep(_RESNET_V3_128, "v3-8", 1024, 0, 4.4 * 3600 / 125_100, "[Flax] TPU v3-8"),
    PublishedStep(_RESNET_32, "v3-32", 1024, 0, 2.1 * 3600 / 125_100, "[Flax] TPU v3-32"),
    PublishedStep(_RESNET_32, "v2-32", 1024, 0, 2.5 * 3600 / 125_100, "[Flax] TPU v2-32"),
    PublishedStep(_RESNET_V3_128, "v3-8", 1024, 0, _of_epochs(687.5, 4, 1024), "[MLPerf 0.5] v3.8"),
    PublishedStep(_RESNET_V3_128, "v3-32", 4096, 0, _of_epochs(164.11, 4, 4096), "[MLPerf 0.6] v3-32"),
    PublishedStep(_RESNET_V3_128, "v3-128", 16384, 0, _of_epochs(40.97, 4, 16384), "[MLPerf 0.6] v3-128"),
    PublishedStep(_RESNET_V3_128, "v3-32", 4096, 0, _of_epochs(157.28, 4, 4096), "[MLPerf 0.7] v3-32-TF2.0"),
    PublishedStep(_RESNET_V2_128, "v2-8", 1024, 0, _of_epochs(1145.5, 4, 1024), "[MLPerf 0.5] v2.8"),
    PublishedStep(
        _RESNET_V2_128,
        "v2-8",
        1024,
        0,
        _of_epochs(28433.4, 89, 1024),
        "[DAWNBench] 111",
        precision="not stated",
    ),
    PublishedStep(_RESNET_V2_128, "v2-8", 1024, 0, _of_epochs(35088.7, 89, 1024), "[DAWNBench] 18"),
)
"""The table of published trainings."""
