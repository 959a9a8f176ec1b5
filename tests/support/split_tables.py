"""Tables whose rows `new` splits, as small as its rules allow."""

import numpy as np

from slipway.pipeline.start.deciding import decide
from slipway.pipeline.start.facts import facts_of
from slipway.pipeline.start.splitting import decide_split

ROWS = 900
NOISE = np.random.default_rng(2).normal(size=ROWS)
LABEL = np.array(["no", "yes"] * (ROWS // 2), dtype=object)
DAYS = [str(day) for day in np.datetime64("2021-01-01") + np.arange(ROWS)]


def split_table(kept=(), label=LABEL, task="binary", is_whole=True, **columns):
    """The plan for a table of some columns and the label `churned`, and how its rows are split."""
    arrays = {"churned": label, **{name: np.array(values) for name, values in columns.items()}}
    arrays = {
        name: values.astype(object if values.dtype.kind in "UO" else np.float64)
        for name, values in arrays.items()
    }
    kinds = {
        name: "text" if each.dtype == object else "int" if (each == np.round(each)).all() else "float"
        for name, each in arrays.items()
    }
    facts = [facts_of(name, kinds[name], values) for name, values in arrays.items()]
    plan = decide(facts, label="churned", task=task, leaks={}, kept=kept)
    return decide_split(plan, arrays, is_whole=is_whole)
