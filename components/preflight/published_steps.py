"""Step times of trainings on TPUs, as measured and published by others: one row per training. Pure.

Each time was read in the repository that its source names, in November 2026; so was the precision, unless it
is "not stated". The exception is a paper that was not at hand, as said there.

    [Trillium]: AI-Hypercomputer/tpu-recipes, commit c8cfe2f: training/trillium/NAME-MaxText/README.md, or the
        README in the folder after the comma: the log line that it shows. Synthetic data, no checkpoints.
    [v5p recipe]: the same repository, training/v5p/NAME-MaxText/README.md, likewise. The line's tokens per
        second and device, and its sum of weights, are those of two sequences on each of 512 devices.
    [Ironwood]: the same repository, the table of training/ironwood/README.md.
    [MaxText]: AI-Hypercomputer/maxtext, commit 76bd53b0f of December 2023: MaxText/configs/v5e/README.md and
        v5p/README.md, the rows of one slice; batch and sequence from the .sh beside them, the rest from
        base.yml. They give no times: they follow from the MFU. Later commits repeat the MFU, but their
        base.yml describes other models. For 1xv4-128.sh and 1xv4-384.sh, commit 281e04bf3 of April 2023:
        README.md, whose rates count no attention; MaxText/configs.
    [AXLearn]: apple/axlearn, commit 4dae7198 of May 2024: axlearn/experiments/text/gpt/fuji.py, the step
        times beside the mesh rules of the 7B model, version 1, and its batch.
    [AXLearn paper]: M. Lee et al., AXLearn, arXiv 2507.05411, table 3, as others quote it; the paper itself
        was not at hand. Two quote the times of AXLearn, one those of the others. The batch is that of fuji.py
        for version 2; the quoted tokens per second and MFU agree with it.
    [MLPerf 0.5], [MLPerf 0.6], [MLPerf 0.7]: mlcommons/training_results_v0.5, v0.6 and v0.7, Google's logs:
        v0.5.0/google/cloud_NAME/.../results/tpu/resnet/result_0.txt, Google/results/tpu-NAME/resnet/ and
        .../bert/: the median time of the blocks after the first, divided by the steps in a block. Blocks of
        0.6 include an evaluation.
    [MLPerf 1.1]: mlcommons/training_results_v1.1, Google's logs of the open division,
        Google/results/tpu-NAME/bert/, likewise; sizes from the README.md and the code in
        Google/benchmarks/bert/implementations. Sequences are packed.
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

from slipway.components.preflight.published_models import (
    BERT_200B,
    BERT_480B,
    BERT_LARGE,
    FUJI_7B,
    GPT_3,
    GPT_J,
    LLAMA_2_7B,
    LLAMA_2_70B,
    LLAMA_8B,
    LLAMA_70B,
    LLAMA_405B,
    MISTRAL_7B,
    RESNET_32,
    RESNET_V2_128,
    RESNET_V3_128,
    Convolutions,
    Transformer,
    maxtext,
    scaled_maxtext,
)
from slipway.components.preflight.question_and_answer import Compiled


def _devices(name: str) -> int:
    """Return the devices of a slice; on v4 and v5p its name has the cores, of which two make a device."""
    generation, _, number = name.partition("-")
    return int(number) // (2 if generation in {"v4", "v5p"} else 1)


@dataclass(frozen=True)
class PublishedStep:
    """One published training.

    Attributes:
        slice: the generation, a key of `chip_specs.CHIPS`, and the number of devices: two per chip on v2, v3
            and v7. On v4 and v5p it is that of cores, as Google names them: two per device.
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
        return _devices(self.slice)

    @property
    def counted(self) -> Compiled:
        """The least that one device computes, moves and sends in a step."""
        return self.network.counted(batch_size=self.batch_size, sequence=self.sequence, devices=self.devices)


# By generation: the positions of a sequence of MaxText's, and the share of the products of attention that its
# rate counts.
_MAXTEXT_COUNTS = {"v4": (1024, 0.0), "v5e": (2048, 1.0), "v5p": (2048, 0.5)}


def _of_rate(network: Transformer, name: str, per_device: int, rate: float, source: str) -> PublishedStep:
    """Return a row of [MaxText], with the time of a step that follows from its rate.

    Args:
        name: the slice.
        per_device: the sequences of one device.
        rate: the operations per second of a chip, which on these generations is a device.
    """
    sequence, counted = _MAXTEXT_COUNTS[name.partition("-")[0]]
    step_s = per_device * network.flops(sequence, counted=counted) / rate
    batch_size = per_device * _devices(name)
    return PublishedStep(network, name, batch_size, sequence, step_s, f"[MaxText] {source}", rate)


def _of_mfu(name: str, scale: int, per_device: int, mfu: float) -> PublishedStep:
    """Return a row of MaxText's tables of MFU, for which it took 197e12 of a v5e and 459e12 of a v5p."""
    generation = name.partition("-")[0]
    rate = mfu * {"v5e": 197e12, "v5p": 459e12}[generation]
    return _of_rate(scaled_maxtext(scale), name, per_device, rate, f"{generation}/{scale}b.sh")


def _of_epochs(seconds: float, epochs: int, batch_size: int) -> float:
    """Return the time of a step, given that of some epochs of ImageNet."""
    return seconds / (epochs * 1_281_167 / batch_size)


# network, slice, batch, positions, seconds, source, rate
PUBLISHED: tuple[PublishedStep, ...] = (
    _of_rate(maxtext(22, 48, 6144, 24576, 24), "v4-128", 16, 156e12, "1xv4-128.sh"),
    _of_rate(maxtext(52, 32, 12288, 49152, 32), "v4-384", 10, 154e12, "1xv4-384.sh"),
    _of_mfu("v5e-256", 16, 6, 0.6110),
    _of_mfu("v5e-256", 32, 4, 0.6686),
    _of_mfu("v5e-256", 64, 2, 0.5990),
    _of_mfu("v5e-256", 128, 1, 0.5606),
    _of_mfu("v5p-128", 32, 8, 0.7147),
    _of_mfu("v5p-128", 64, 4, 0.7031),
    _of_mfu("v5p-256", 128, 2, 0.6868),
    _of_mfu("v5p-512", 128, 2, 0.6883),
    _of_mfu("v5p-1024", 256, 2, 0.6709),
    _of_mfu("v5p-1024", 512, 2, 0.6399),
    _of_mfu("v5p-2048", 1024, 2, 0.5535),
    _of_mfu("v5p-4096", 1024, 2, 0.6480),
    PublishedStep(LLAMA_405B, "v5p-1024", 1024, 8192, 131.474, "[v5p recipe] Llama3.1-405B", 314.530e12),
    PublishedStep(LLAMA_8B, "v6e-8", 24, 8192, 3.443, "[Trillium] Llama3.1-8B, v6e-8", 413.433e12),
    PublishedStep(LLAMA_8B, "v6e-256", 1024, 8192, 4.546, "[Trillium] Llama3.1-8B, v6e-256", 417.397e12),
    PublishedStep(MISTRAL_7B, "v6e-8", 48, 8192, 6.320, "[Trillium] Mistral-7B", 431.981e12),
    PublishedStep(LLAMA_70B, "v6e-32", 64, 8192, 17.790, "[Trillium] Llama3.1-70B, v6e-32", 443.385e12),
    PublishedStep(LLAMA_70B, "v6e-256", 1280, 8192, 42.656, "[Trillium] Llama3.1-70B, v6e-256", 462.297e12),
    PublishedStep(LLAMA_2_70B, "v6e-256", 512, 4096, 9.052, "[Trillium] Llama2-70B", 402.274e12),
    PublishedStep(GPT_3, "v6e-256", 768, 2048, 17.182, "[Trillium] GPT3-175B, bf16", 384.891e12),
    PublishedStep(LLAMA_70B, "v7-128", 256, 8192, 12.20, "[Ironwood] llama3.1-70b, 64 chips", 1207.05e12),
    PublishedStep(LLAMA_70B, "v7-512", 1024, 8192, 12.27, "[Ironwood] llama3.1-70b, 256 chips", 1199.67e12),
    PublishedStep(LLAMA_405B, "v7-512", 1536, 8192, 98.34, "[Ironwood] llama3.1-405b", 1261.40e12),
    PublishedStep(FUJI_7B, "v4-1024", 2048, 2048, 3.03, "[AXLearn] 7B, v1"),
    PublishedStep(FUJI_7B, "v5p-512", 2048, 2048, 2.85, "[AXLearn] 7B, v1"),
    PublishedStep(LLAMA_2_7B, "v5p-512", 1024, 4096, 2.5, "[AXLearn paper] AXLearn", 0.662 * 459e12),
    PublishedStep(LLAMA_2_7B, "v5p-512", 1024, 4096, 2.7, "[AXLearn paper] MaxText", 0.616 * 459e12),
    PublishedStep(LLAMA_2_7B, "v5p-512", 1024, 4096, 3.5, "[AXLearn paper] PyTorch/XLA", 0.467 * 459e12),
    PublishedStep(LLAMA_2_70B, "v5p-1024", 1024, 4096, 11.6, "[AXLearn paper] AXLearn", 0.680 * 459e12),
    PublishedStep(LLAMA_2_70B, "v5p-1024", 1024, 4096, 12.3, "[AXLearn paper] MaxText", 0.644 * 459e12),
    PublishedStep(BERT_200B, "v4-2048", 4096, 512, 16.875, "[MLPerf 1.1] v4-2048-JAX"),
    PublishedStep(BERT_480B, "v4-4096", 4096, 512, 22.796, "[MLPerf 1.1] v4-4096-TF"),
    PublishedStep(BERT_LARGE, "v3-32", 448, 512, 0.4603, "[MLPerf 0.7] v3-32-TF2.0"),
    PublishedStep(GPT_J, "v3-8", 16, 2048, 16 * 2048 / 5000, "[GPT-J]"),
    PublishedStep(RESNET_V3_128, "v3-8", 1024, 0, 4.4 * 3600 / 125_100, "[Flax] TPU v3-8"),
    PublishedStep(RESNET_32, "v3-32", 1024, 0, 2.1 * 3600 / 125_100, "[Flax] TPU v3-32"),
    PublishedStep(RESNET_32, "v2-32", 1024, 0, 2.5 * 3600 / 125_100, "[Flax] TPU v2-32"),
    PublishedStep(RESNET_V3_128, "v3-8", 1024, 0, _of_epochs(687.5, 4, 1024), "[MLPerf 0.5] v3.8"),
    PublishedStep(RESNET_V3_128, "v3-32", 4096, 0, _of_epochs(164.11, 4, 4096), "[MLPerf 0.6] v3-32"),
    PublishedStep(RESNET_V3_128, "v3-128", 16384, 0, _of_epochs(40.97, 4, 16384), "[MLPerf 0.6] v3-128"),
    PublishedStep(RESNET_V3_128, "v3-32", 4096, 0, _of_epochs(157.28, 4, 4096), "[MLPerf 0.7] v3-32-TF2.0"),
    PublishedStep(RESNET_V2_128, "v2-8", 1024, 0, _of_epochs(1145.5, 4, 1024), "[MLPerf 0.5] v2.8"),
    PublishedStep(
        RESNET_V2_128,
        "v2-8",
        1024,
        0,
        _of_epochs(28433.4, 89, 1024),
        "[DAWNBench] 111",
        precision="not stated",
    ),
    PublishedStep(RESNET_V2_128, "v2-8", 1024, 0, _of_epochs(35088.7, 89, 1024), "[DAWNBench] 18"),
)
"""The table of published trainings."""
