"""Runs the preflight on models with and without known faults, and compares its findings with expected ones.

    .venv-tpu/bin/python -m benchmarks.preflight_suite [--traced | --list] [NAME...]

The models and their expected findings are in tests/data/preflight/judged_models.py. For each fault
mended_models.py has the same model with what the remedy says done to it: then the finding must be gone. All
models are compiled in this process, so it must run in an interpreter that compiles. `--traced` traces them
for a CPU, which needs no libtpu and takes a minute instead of several, and leaves out those with a fault that
only the compiler finds, such as activations that do not fit. `--list` judges nothing: a line of JSON for each
model.

Prints a line for each model: right, missed, false alarm, wrong rules, poor words, poor remedy, not mended or
other remedy; and the findings. The exit code is 1 if a model is not right.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

MODELS = Path(__file__).resolve().parents[1] / "tests" / "data" / "preflight"
sys.path.insert(0, str(MODELS))

from slipway.components.errors import SlipwayError  # noqa: E402
from slipway.components.preflight import compile_and_measure, training_step  # noqa: E402
from slipway.components.preflight.chip_specs import CHIPS  # noqa: E402
from slipway.components.preflight.compiler import WITH_LIBTPU, adapt_to_compiler  # noqa: E402
from slipway.components.preflight.finding import Finding  # noqa: E402
from slipway.components.preflight.question_and_answer import Compiled, Question, Slice  # noqa: E402
from slipway.components.preflight.verdict import Training, judge  # noqa: E402

SLICES = {
    name: Slice(
        name=name,
        generation=name.partition("-")[0],
        devices=devices,
        hosts=hosts,
        topology=topology,
        memory_bytes=CHIPS[name.partition("-")[0]].usable_bytes,
        has_tensorflow=not name.startswith("v6e"),
    )
    for name, devices, hosts, topology in (
        ("v5e-1", 1, 1, "1x1"),
        ("v5e-8", 8, 1, "2x4"),
        ("v5e-16", 16, 4, "4x4"),
        ("v6e-1", 1, 1, "1x1"),
        ("v6e-8", 8, 1, "2x4"),
    )
}
EXPECTED = ("too_small", "loop", "backend", "interpreter")
"""Rules whose findings are about the question or this machine, not about a fault of the model."""


def main() -> int:
    """Check the models, print the results, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="of models; default: all")
    parser.add_argument("--traced", action="store_true", help="without the compiler")
    parser.add_argument("--list", action="store_true", help="what each model is about")
    options = parser.parse_args()
    compile_and_measure._prepare()
    import mended_models  # which has the faulty ones, too

    cases, found, wrong = mended_models.CASES, {}, 0
    if options.traced:
        training_step.TrainingStep.compiled = _not_compiled
    for name in options.names or cases:
        case = cases[name]
        if options.list:
            about = {"rules": case.rules, "mends": case.mends, "needs_compiler": case.needs_compiler}
            print(json.dumps({"name": name, **about}))
            continue
        if options.traced and case.needs_compiler:
            continue
        began = time.monotonic()
        for each in filter(None, (case.mends, name)):
            if each not in found:
                found[each] = found_in(cases[each], is_traced=options.traced)
        said = verdict(case, found[name])
        if case.mends and said == "right":
            said = after_remedy(case, cases[case.mends], found[name], found[case.mends])
        wrong += said != "right"
        of = f", mends {case.mends}" if case.mends else ""
        print(f"{said:<12} {name:<46} {time.monotonic() - began:5.1f} s{of}", flush=True)
        for each in found[name]:
            print(f"    {each.severity} {each.rule}: {each.message}", flush=True)
    if not options.list:
        print(f"{wrong} not right")
    return 1 if wrong else 0


def found_in(case: Any, *, is_traced: bool) -> list[Finding]:
    """Return what the preflight finds in a model; an error becomes a finding of the rule "refused".

    Args:
        case: one of `judged_models.CASES`.
        is_traced: whether it is traced for a CPU, and not compiled.
    """
    import keras

    keras.utils.clear_session()  # so that the names of its layers begin anew, as in a process of its own
    asked = {
        "features": (
            {"name": "x", "dtype": case.dtype, "shape": list(case.x), "categories": None},
            {"name": "y", "dtype": "float32", "shape": list(case.y), "categories": None},
        ),
        "label": "y",
        **case.settings,
    }
    question = Question(
        slice=SLICES[case.slice],
        model=case.model,
        hyperparameters={},
        batch_size=case.batch_size,
        **asked,
    )
    try:
        answer = compile_and_measure.answer_to(adapt_to_compiler(question, "" if is_traced else WITH_LIBTPU))
    except SlipwayError as error:
        return [Finding(rule="refused", severity="error", message=error.message, remedy=error.hint)]
    except Exception as error:  # as the compiling process reports errors of the user's code
        from slipway.components.trainer.user_model import describe

        message = describe(error, question.model)
        return [Finding(rule="refused", severity="error", message=message, remedy="")]
    training = Training(backend=case.backend, epochs=1, **case.training)
    return list(judge(question, answer, training).findings)


def verdict(case: Any, found: list[Finding]) -> str:
    """Return "right" if the findings are exactly the expected ones, else what is wrong with them."""
    counted = [each for each in found if each.rule not in EXPECTED or each.rule in case.rules]
    rules = {each.rule for each in counted}
    if rules != set(case.rules):
        return "missed" if not rules else "wrong rules" if case.rules else "false alarm"
    if case.says and not any(case.says in each.message for each in counted):
        return "poor words"
    wanted = case.remedy if isinstance(case.remedy, dict) else dict.fromkeys(case.rules, case.remedy)
    return "right" if all(wanted[each.rule] in each.remedy for each in counted) else "poor remedy"


def after_remedy(case: Any, faulty: Any, found: list[Finding], before: list[Finding]) -> str:
    """Return "right" if a fault's findings are gone, after one of their remedies and of no other's.

    Args:
        case: the model after the remedy; its findings are the expected ones.
        faulty: the model before.
        found, before: their findings.
    """
    if not any(case.by in each.remedy for each in before if each.rule in faulty.rules):
        return "other remedy"
    left = {each.rule for each in found} & set(faulty.rules) - set(case.rules)
    gone = {(each.rule, each.message) for each in before} - {(each.rule, each.message) for each in found}
    return "right" if gone and not left else "not mended"


def _not_compiled(_: object, batch_size: int, *, fast: bool = False) -> Compiled:
    del fast
    return Compiled(batch_size=batch_size, peak_bytes=1, flops=1e15, moved_bytes=1e9)


if __name__ == "__main__":
    sys.exit(main())
