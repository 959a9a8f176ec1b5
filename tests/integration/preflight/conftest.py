import functools
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from slipway.components.preflight.question_and_answer import Answer, Question
from slipway.components.typed_json import typed

# JAX and Keras take seconds to start: one process for all questions of a module.
ANSWER = """
import json, sys
from slipway.components.preflight import compile_and_measure as compile_step
from slipway.components.preflight.question_and_answer import Question
from slipway.components.typed_json import typed
compile_step._prepare()
for line in sys.stdin:
    answer = compile_step.answer_to(typed(Question, json.loads(line)))
    print(json.dumps({"answer": answer.to_json()}), flush=True)
"""


@pytest.fixture(scope="module")
def asked(project: Path) -> Iterator[Callable[[str, list[Question]], list[Answer]]]:
    """Has an interpreter answer questions about the models of tests/data/preflight, equal ones only once."""
    roots = [str(project), str(project / "tests" / "data" / "preflight")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(roots), "TF_CPP_MIN_LOG_LEVEL": "3"}
    with ExitStack() as ended:

        @functools.cache
        def process(python: str) -> subprocess.Popen[str]:
            started = subprocess.Popen(
                [python, "-W", "ignore", "-c", ANSWER],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            ended.enter_context(started)  # whose input ends then, and so does it
            return started

        @functools.cache
        def answer(python: str, question: str) -> Answer:
            there = process(python)
            assert there.stdin is not None
            assert there.stdout is not None
            there.stdin.write(f"{question}\n")
            there.stdin.flush()
            lines = (line for line in there.stdout if line.startswith('{"answer"'))
            told = next(lines, None)
            assert told is not None, f"{python} has ended: its errors say why"
            return typed(Answer, json.loads(told)["answer"])

        yield lambda python, questions: [answer(python, json.dumps(each.to_json())) for each in questions]


@pytest.fixture(scope="session")
def tpu_python(project: Path) -> str:
    """The Python that has libtpu; CI goes on without where it cannot be had in time."""
    python = project / ".venv-tpu" / "bin" / "python"
    if not python.exists():
        pytest.skip("there is no .venv-tpu: `make tpu-compiler` makes it")
    return str(python)
