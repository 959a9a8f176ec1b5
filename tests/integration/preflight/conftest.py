import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from slipway.components.preflight.question_and_answer import Answer, Question

# One process for all questions of a test: JAX and Keras take seconds to start.
ASK_ALL = """
import json, sys
from slipway.components.preflight import compile_and_measure as compile_step
from slipway.components.preflight.question_and_answer import Question
compile_step._prepare()
for line in sys.stdin:
    print(json.dumps({"answer": compile_step.answer_to(Question.from_json(json.loads(line))).to_json()}))
"""


@pytest.fixture(scope="session")
def asked(project: Path) -> Callable[[str, list[Question]], list[Answer]]:
    """Has an interpreter answer questions about the models of tests/data/preflight."""

    def ask(python: str, questions: list[Question]) -> list[Answer]:
        roots = [str(project), str(project / "tests" / "data" / "preflight")]
        done = subprocess.run(
            [python, "-W", "ignore", "-c", ASK_ALL],
            input="\n".join(json.dumps(each.to_json()) for each in questions),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(roots), "TF_CPP_MIN_LOG_LEVEL": "3"},
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
        sys.stderr.write(done.stderr[-3000:])
        lines = [line for line in done.stdout.splitlines() if line.startswith('{"answer"')]
        return [Answer.from_json(json.loads(line)["answer"]) for line in lines]

    return ask


@pytest.fixture(scope="session")
def tpu_python(project: Path) -> str:
    """The Python that has libtpu; CI goes on without where it cannot be had in time."""
    python = project / ".venv-tpu" / "bin" / "python"
    if not python.exists():
        pytest.skip("there is no .venv-tpu: `make tpu-compiler` makes it")
    return str(python)
