"""Derives the preflight's question from a workload: the slice, and the settings of the training step."""

from dataclasses import asdict
from typing import Any

from slipway.components.nearest import nearest_first
from slipway.components.parameters import as_parameter
from slipway.components.preflight.chip_specs import CHIPS, Price
from slipway.components.preflight.compiler import all_package_versions, find_compiler
from slipway.components.preflight.other_slices import OTHER_SLICES
from slipway.components.preflight.question_and_answer import Slice
from slipway.components.project import PROJECT_ROOT
from slipway.components.store_address import outlives_its_container
from slipway.pipeline.config import WorkloadConfig
from slipway.pipeline.errors import ConfigError
from slipway.pipeline.wiring.vertex_tpu_slices import TPU_SLICES, TpuSlice, tpu_slice


def named_slices(name: str) -> list[Slice]:
    """Return the slice of that name, or for the name of a generation all its slices.

    Raises:
        ConfigError: there is no such slice or generation; names the nearest.
    """
    if name in CHIPS:
        rented = [wanted_slice(each) for each in TPU_SLICES.values() if each.generation == name]
        return [*rented, *(each for each in OTHER_SLICES.values() if each.generation == name)]
    if name in OTHER_SLICES:
        return [OTHER_SLICES[name]]
    known = (*TPU_SLICES, *OTHER_SLICES)
    if name not in known:
        near = nearest_first(name, known)[:3]
        raise ConfigError(
            f"there is no slice {name!r} to compile for; nearest: {', '.join(near)}",
            hint=f"a generation ({', '.join(CHIPS)}) for all its slices, or one of {', '.join(known)}",
        )
    return [wanted_slice(TPU_SLICES[name])]


def wanted_slice(tpu: TpuSlice) -> Slice:
    """Return a Vertex AI slice in the form that the compiler and the rules need."""
    return Slice(
        name=tpu.name,
        generation=tpu.generation,
        devices=tpu.devices,
        hosts=tpu.hosts,
        topology=tpu.machine.get("tpuTopology", "2x2"),  # Vertex AI takes no topology for v2-8 and v3-8
        memory_bytes=CHIPS[tpu.generation].usable_bytes,
        machine=dict(tpu.machine),
        has_tensorflow=tpu.has_tensorflow,
    )


def step_settings(config: WorkloadConfig) -> dict[str, Any]:
    """Return the fields of a `Question` that the workload file determines, except its slice."""
    train = config.train
    return {
        "model": train.model,
        "hyperparameters": {**train.hyperparameters, **searched_values(config)},
        "label": config.transform.label,
        "batch_size": train.batch_size,
        "precision": train.precision,
        "accumulate_steps": train.accumulate_steps,
        "model_parallel": train.model_parallel,
        "layout": train.layout,
        **({"is_weighted": True} if config.transform.weight or train.class_weights else {}),
        **({"bucket_by_length": train.input.bucket_by_length} if train.input.bucket_by_length else {}),
    }


def searched_values(config: WorkloadConfig) -> dict[str, object]:
    """Return the value that is judged of each hyperparameter that `tune` searches; any may be trained.

    It is that of `train.hyperparameters`; of one that is not there, which only the search gives, the first.
    """
    search = config.tune.search if config.tune else {}
    given = config.train.hyperparameters
    return {
        name: given.get(name, entry.choices[0] if entry.choices else entry.low)
        for name, entry in search.items()
    }


def has_best_nowhere(config: WorkloadConfig) -> bool:
    """Return True if the best epoch is wanted, and no folder that several hosts reach keeps it.

    A cloud run, which alone starts several hosts, keeps checkpoints below `cloud.root`.
    """
    folder = config.train.checkpoint.folder
    is_common = config.cloud.root is not None if folder is None else outlives_its_container(folder)
    return config.train.serves_best and not is_common


def has_best_of_trials(config: WorkloadConfig) -> bool:
    """Return True if the best epoch is wanted of the trials of a search, which share no folder."""
    return config.tune is not None and config.train.serves_best


def own_prices(config: WorkloadConfig) -> dict[str, Price]:
    """Return the user's own prices of a chip-hour, by generation."""
    known = config.preflight
    return {name: Price(usd=usd, month=known.prices_of or "") for name, usd in known.prices.items()}


def node_settings(config: WorkloadConfig) -> dict[str, object]:
    """Return the settings of the Preflight node, as plain values.

    Raises:
        ConfigError: there is no slice of that name, or the backend does not train on it.
    """
    wanted = wanted_slice(tpu_slice(config.train.tpu, backend=config.train.backend))
    step = step_settings(config)
    training = {
        "backend": config.train.backend,
        "epochs": config.train.epochs,
        "tpu_region": config.cloud.vertex.region or "",
        "prices": {name: asdict(price) for name, price in own_prices(config).items()},
        **({"input_cache": config.train.input.cache} if config.train.input.cache != "auto" else {}),
        **({"blow_up_trials": trials} if (trials := config.train.blow_up.trials) else {}),
        **({"has_best_nowhere": True} if has_best_nowhere(config) else {}),
        **({"has_best_of_trials": True} if has_best_of_trials(config) else {}),
        **({"searched": searched} if (searched := searched_values(config)) else {}),
        **({"steps_per_execution": steps} if (steps := config.train.steps_per_execution or 1) > 1 else {}),
    }
    layout = {pattern: list(axes) for pattern, axes in config.train.layout.items()}
    return {
        "workload": config.name,
        "model": step.pop("model"),
        "step": as_parameter({**step, "layout": layout}),
        "tpu_slice": as_parameter(asdict(wanted)),
        "training": as_parameter(training),
        "images": {name: list(shape) for name, shape in config.train.images.items()},
        "limit_s": config.preflight.limit_s,
        "pass_through": [name for name in config.transform.apart if name not in config.transform.labels],
        "compiler": compiler_versions(),
    }


def compiler_versions() -> dict[str, str]:
    """Return the versions of all packages beside the compiler on this machine; empty if there is none.

    The model may import any of them.
    """
    compiler = find_compiler()
    return all_package_versions(PROJECT_ROOT / compiler) if compiler else {}
