"""kill -9 at random moments of a push, while a reader loads whatever it sees."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from slipway.components.pusher.manifest import verify
from slipway.components.pusher.publish_to_folder import publish
from slipway.components.saved_model.loading import LoadedModel

pytestmark = [pytest.mark.slow, pytest.mark.external]

KILLS = 100
FACTORS = (3, 5)
# In a process without TensorFlow: forked children of it are all that is killed.
PUSHER = """
import os, random, signal, sys, time
from pathlib import Path
from slipway.components.pusher.publish_to_folder import publish

kills, base, *models = int(sys.argv[1]), Path(sys.argv[2]), *map(Path, sys.argv[3:])

def push():
    # In turn, so that no push finds its model there.
    publish(models[len(list(base.glob("[0-9]*"))) % len(models)], base=base)

push()
began = time.monotonic()
push()
usual_s = time.monotonic() - began
random.seed(7)
for _ in range(kills):
    child = os.fork()
    if not child:
        try:
            push()
        finally:
            os._exit(0)
    time.sleep(random.uniform(0, 1.2 * usual_s))
    os.kill(child, signal.SIGKILL)
    was_killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
    usual_s *= 1.1 if was_killed else 0.8  # the machine may be busier or quieter than it was before
    print(int(was_killed))
"""


class Reader(threading.Thread):
    """Loads every version as soon as it sees it, and the newest again and again."""

    def __init__(self, base):
        super().__init__(daemon=True)
        self.base, self.stopping = base, threading.Event()
        self.answers, self.failures, self.looks = {}, {}, 0

    def run(self):
        while not self.stopping.is_set():
            self.look()

    def look(self):
        self.looks += 1
        numbers = sorted(int(path.name) for path in self.base.glob("[0-9]*"))
        for number in numbers:
            if number not in self.answers or number == numbers[-1]:
                self.load(number)

    def load(self, number):
        try:
            row = {"fare": np.array([[1.0]]), "company": np.array([[b""]], dtype=object)}
            [answer] = LoadedModel(self.base / str(number)).call("serve_raw", row).values()
            self.answers[number] = int(answer[0][0])
        except Exception as error:  # whatever it is, the version does not load
            self.failures[number] = error


def test_reader_loads_every_version_it_sees_while_pushes_are_killed(saved_model, base, project):
    models = [str(saved_model(factor)) for factor in FACTORS]
    base.mkdir(parents=True)
    reader = Reader(base)
    reader.start()
    try:
        done = subprocess.run(
            [sys.executable, "-c", PUSHER, str(KILLS), str(base), *models],
            cwd=project,
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
    finally:
        reader.stopping.set()
        reader.join()
    reader.look()
    assert reader.failures == {}
    killed = [line == "1" for line in done.stdout.split()]
    assert len(killed) == KILLS
    assert sum(killed) >= KILLS // 2
    # In the order of their numbers they answer in turn: none was lost between, none is mixed.
    answers = [reader.answers[number] for number in sorted(reader.answers)]
    assert answers == [FACTORS[place % 2] for place in range(len(answers))]
    # Some pushes were killed before their version was there.
    assert len(answers) < KILLS + 2
    assert reader.looks >= 20
    published = publish(saved_model(7), base=base)
    assert verify(published.path) == ""
    assert not list(base.glob(".staging-*"))
