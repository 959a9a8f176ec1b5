import json

import numpy as np
import pytest

from slipway.components.data_gate.statistics import Distribution, FeatureStatistics, SplitStatistics

DAY_S = 86_400
BEGIN_S = 1_795_305_600  # 2026-11-22


@pytest.fixture
def training():
    """Fares evenly from 0 to 10, and three companies in four of which one is A."""
    deciles = np.linspace(0, 1, 11)
    fare = FeatureStatistics(
        "fare",
        "float",
        10_000,
        10_000,
        10_000,
        max=10,
        mean=5,
        distribution=Distribution(deciles * 10, deciles),
    )
    company = FeatureStatistics(
        "company", "text", 10_000, 7_500, 7_500, unique=2, counts={"A": 5_000.0, "B": 2_500.0}
    )
    return SplitStatistics(10_000, {"fare": fare, "company": company})


@pytest.fixture
def write_log(tmp_path):
    """Writes a day's requests like the training's, with the fares changed; returns the folder."""

    def write(day, *, rows=1000, version=7, factor=1.0, name="", **more):
        draw = np.random.default_rng(day)
        path = tmp_path / "log" / (name or f"requests-{day}.jsonl")
        path.parent.mkdir(exist_ok=True)
        with path.open("w") as file:
            for row in range(rows):
                at_s = BEGIN_S + day * DAY_S + row % DAY_S
                at = np.datetime64(at_s, "s").astype(str) + ".000+00:00"
                company = [None, "A", "A", "B"][draw.integers(4)]
                line = {"logged_at": at, "logged_version": version, "fare": draw.random() * 10 * factor}
                file.write(json.dumps({**line, "company": company, **more}) + "\n")
        return path.parent

    return write
