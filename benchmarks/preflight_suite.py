"""Runs the preflight on models with and without known faults, and compares its findings with expected ones.

    .venv-tpu/bin/python -m benchmarks.preflight_suite [--traced] [NAME...]

The models and their expected findings are in tests/data/preflight/judged_models.py. All models are compiled
in this process, so it must run in an interpreter that compiles. `--traced` skips the compiler (half a minute
instead of several), except for models with a fault that only it finds, such as activations that do not fit.

Prints a line for each model: right, missed, false alarm, wrong rules, poor words or poor remedy; and the
findings. The exit code is 1 if a model is not right.
"""

import argparse
import sys
import time
from pathlib import Path
from types import ModuleType

MODELS = Path(__file__).resolve().parents[1] / "tests" / "data" / "preflight"
sys.path.insert(0, str(MODELS))

from slipway.components.errors import SlipwayError  # noqa: E402
from slipway.components.preflight import compile_and_measure, training_step  # noqa: E402
from slipway.components.preflight.chip_specs import CHIPS  # noqa: E402
from slipway.components.preflight.finding import Finding  # noqa: E402
from slipway.components.preflight.question_and_answer import Compiled, Question, Slice  # noqa: E402
from slipway.components.preflight.verdict import Training, judge  # noqa: E402

SLICES = {
    name: Slice(
        name=name,
        generation="v5e",
        devices=devices,
        topology=topology,
        memory_bytes=CHIPS["v5e"].usable_bytes,
    )
    for name, devices, topology in (("v5e-1", 1, "1x1"), ("v5e-8", 8, "2x4"))
}
EXPECTED = ("too_small", "backend")
"""Rules whose findings are about the question, not about a fault of the model."""


def main() -> int:
    """Check the models, print the results, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of models; default: all")
    parser.add_argument("--traced", action="store_true", help="without the compiler")
    options = parser.parse_args()
    compile_and_measure._prepare()
    compiled = training_step.TrainingStep.compiled
    import judged_models

    wrong = 0
    for name in options.names or judged_models.CASES:
        is_traced = options.traced and not judged_models.CASES[name].needs_compiler
        training_step.TrainingStep.compiled = _not_compiled if is_traced else compiled
        began = time.monotonic()
        found = found_in(judged_models, name)
        said = verdict(judged_models.CASES[name], found)
        wrong += said != "right"
        print(f"{said:<12} {name:<46} {time.monotonic() - began:5.1f} s", flush=True)
        for each in found:
            print(f"    {each.severity} {each.rule}: {each.message}", flush=True)
    print(f"{wrong} not right")
    return 1 if wrong else 0


def found_in(models: ModuleType, name: str) -> list[Finding]:
    """Return what the preflight finds in a model; an error becomes a finding of the rule "refused"."""
    import keras

    keras.utils.clear_session()  # so that the names of its layers begin anew, as in a process of its own
    case = models.CASES[name]
    question = Question(
        slice=SLICES[case.slice],
        model=f"{models.__name__}.{name}",
        hyperparameters={},
        features=(
            {"name": "x", "dtype": case.dtype, "shape": list(case.x), "categories": None},
            {"name": "y", "dtype": "float32", "shape": list(case.y), "categories": None},
        ),
        label="y",
        batch_size=case.batch_size,
        **case.settings,
    )
    try:
        answer = compile_and_measure.answer_to(question)
    except SlipwayError as error:
        return [Finding(rule="refused", severity="error", message=error.message, remedy=error.hint)]
    except Exception as error:  # as the compiling process reports errors of the user's code
        from slipway.components.trainer.user_model import describe

        message = describe(error, question.model)
        return [Finding(rule="refused", severity="error", message=message, remedy="")]
    return list(judge(question, answer, Training(backend=case.backend, epochs=1)).findings)


def verdict(case, found: list[Finding]) -> str:
    """Return "right" if the findings are exactly the expected ones, else what is wrong with them."""
    counted = [each for each in found if each.rule not in EXPECTED or each.rule in case.rules]
    rules = {each.rule for each in counted}
    if rules != set(case.rules):
        return "missed" if not rules else "wrong rules" if case.rules else "false alarm"
    if case.says and not any(case.says in each.message for each in counted):
        return "poor words"
    wanted = case.remedy if isinstance(case.remedy, dict) else dict.fromkeys(case.rules, case.remedy)
    return "right" if all(wanted[each.rule] in each.remedy for each in counted) else "poor remedy"


def _not_compiled(_: object, batch_size: int, *, fast: bool = False) -> Compiled:
    del fast
    return Compiled(batch_size=batch_size, peak_bytes=1, flops=1e15, moved_bytes=1e9)


if __name__ == "__main__":
    sys.exit(main())
