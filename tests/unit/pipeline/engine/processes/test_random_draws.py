"""Forks draw different random numbers, unless the user's code has seeded the generator."""

import os
import socket
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from slipway.pipeline.engine.launcher import Start
from slipway.pipeline.engine.processes.fork_server import ForkServer
from slipway.pipeline.engine.processes.messages import Compile
from slipway.pipeline.engine.processes.node_process import NodeProcess
from slipway.pipeline.engine.processes.random_draws import draw_anew, drawing_state
from slipway.pipeline.errors import UsageError
from slipway.pipeline.runs.run_target import ModuleRun, Order


@pytest.fixture(autouse=True)
def kept():
    """The generator of the test's own process stays as it was."""
    state = np.random.get_state()
    yield
    np.random.set_state(state)


def test_generator_that_nobody_has_seeded_begins_anew():
    state = drawing_state()
    draw_anew(unless_left=state)
    assert drawing_state() != state
    state = drawing_state()
    draw_anew()
    assert drawing_state() != state


def test_generator_that_the_user_s_code_has_seeded_goes_on():
    fresh = drawing_state()
    np.random.seed(7)
    draw_anew(unless_left=fresh)
    first = np.random.randint(10**9)
    np.random.seed(7)
    assert first == np.random.randint(10**9)


@pytest.mark.parametrize("kind", [np.random.MT19937, np.random.PCG64, np.random.Philox])
def test_states_differ_where_any_part_of_them_does(kind):
    """Also those of a generator that the user's code has put in its place."""
    before = np.random.get_bit_generator()
    try:
        np.random.set_bit_generator(kind(7))
        states = [drawing_state()]
        for _ in range(3):
            np.random.standard_normal()
            states.append(drawing_state())
        np.random.set_bit_generator(kind(7))
        assert drawing_state() == states[0]
    finally:
        np.random.set_bit_generator(before)
    assert len(set(states)) == 4


@pytest.mark.parametrize(("given", "is_seeded"), [(7, False), (2**32 - 1, False), (2**52 + 7, True)])
def test_torch_begins_anew_unless_it_was_given_a_seed(monkeypatch, given, is_seeded):
    seeded = []
    generator = SimpleNamespace(initial_seed=lambda: given, seed=lambda: seeded.append(True))
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(default_generator=generator))
    draw_anew()
    assert bool(seeded) is is_seeded


class Node(NodeProcess):
    """A node's process that tells what it draws."""

    def _run(self, compiled):
        return {
            "state": "complete",
            "execution_id": None,
            "outputs": {},
            "why": str(np.random.randint(10**9)),
        }


@pytest.fixture
def drawn():
    """What each of two nodes draws, as texts."""

    def one(unseeded):
        node = Node(Start(node="A", attempt=1, log="", progress="", left="", state=""))
        ours, theirs = socket.socketpair()
        with ours, theirs:
            server, pid = os.getpid(), os.fork()
            if pid == 0:
                node.become(None, server=server, forks=theirs, unseeded=unseeded)
            os.waitpid(pid, 0)
        return node.take_result()["why"]

    return lambda unseeded: (one(unseeded), one(unseeded))


def test_nodes_draw_different_numbers(drawn):
    first, second = drawn(drawing_state())
    assert first != second


def test_nodes_of_a_module_that_seeds_the_generator_draw_what_it_asks_for(drawn):
    unseeded = drawing_state()
    np.random.seed(7)
    first, second = drawn(unseeded)
    assert first == second == str(np.random.randint(10**9))


def test_server_notes_the_state_before_it_imports_the_user_s_code():
    class Line:
        def send(self, message):
            pass

    class Server(ForkServer):
        def load(self, order):
            np.random.seed(7)
            raise UsageError("there is no such pipeline")

    unseeded, server = drawing_state(), Server(Line())
    server._answer(Compile(Order(target=ModuleRun(pipeline="p:q"), run_id="r")))
    assert server._unseeded == unseeded != drawing_state()
