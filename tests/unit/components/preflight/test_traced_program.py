"""Findings in traced programs, read from stand-ins for JAX's."""

from types import SimpleNamespace as Plain

import numpy as np
import pytest

from slipway.components.preflight import traced_program
from slipway.components.preflight.question_and_answer import Trait


class Equation(Plain):
    def __str__(self) -> str:
        return f"{self.primitive.name} {self.text} at 0x{id(self):x}"


def equation(name, invars=(), outvars=(), stack="", text="", **params):
    return Equation(
        primitive=Plain(name=name),
        invars=list(invars),
        outvars=list(outvars),
        params=params,
        source_info=Plain(name_stack=stack),
        text=text,
    )


def program(eqns, invars=(), consts=()):
    variables = [object() for _ in consts] if not isinstance(consts, dict) else list(consts)
    values = list(consts.values()) if isinstance(consts, dict) else list(consts)
    return Plain(jaxpr=Plain(eqns=list(eqns), invars=list(invars), constvars=variables), consts=values)


def where(each):
    return each.source_info.name_stack


A, B, C = Plain(name="a"), Plain(name="b"), Plain(name="c")


class Variable:
    """One that a dictionary may hold."""


def test_a_tensor_of_another_trace_is_an_input_before_the_arguments_and_is_told_where_it_is_used():
    used = [equation("add", [B], [C], stack="first"), equation("mul", [A, C], stack="keeping")]

    assert traced_program.leak(program(used, invars=[A, B]), 1, where) == "keeping"
    assert traced_program.leak(program(used, invars=[A, B]), 2, where) is None


def test_a_large_constant_is_reported_with_the_layer_that_uses_it_and_a_small_one_is_not():
    large, small = Variable(), Variable()
    values = {large: np.zeros((2**20, 16), "float32"), small: np.zeros(8)}
    traced = program([equation("add", [small]), equation("gather", [A, large], stack="table")], consts=values)

    assert list(traced_program.large_constants(traced, where)) == [
        Trait(kind="constant", where="table", detail="64 MiB, float32 (1048576, 16)")
    ]


def test_noise_of_a_constant_key_is_reported_and_noise_of_a_given_one_is_not():
    inner = Plain(eqns=[equation("random_bits", [B], [C])], invars=[B])
    outer = [equation("random_wrap", [A], [C]), equation("jit", [C], [], stack="dropout", jaxpr=inner)]

    assert not list(traced_program.constant_noise(program(outer, invars=[A]), where))
    assert list(traced_program.constant_noise(program(outer), where)) == [
        Trait(kind="same_noise", where="dropout")
    ]


def test_loops_within_loops_are_multiplied_and_short_ones_are_no_matter():
    inner = Plain(eqns=[equation("scan", length=40, jaxpr=Plain(eqns=[], invars=[]))], invars=[])
    long = equation("scan", stack="reader", length=50, jaxpr=inner)
    short = equation("scan", stack="other", length=64, jaxpr=Plain(eqns=[], invars=[]))

    assert list(traced_program.long_loops(program([short, long]), where)) == [
        Trait(kind="long_loop", where="reader", detail="2,000 turns")
    ]


def test_two_traces_that_differ_in_an_equation_are_told_where():
    first = program([equation("add", text="1.0"), equation("mul", text="2.0", stack="counting")])
    second = program([equation("add", text="1.0"), equation("mul", text="3.0", stack="counting")])

    assert traced_program.difference(first, first, where) is None
    assert traced_program.difference(first, second, where) == Trait(kind="each_trace", where="counting")


@pytest.mark.parametrize(("value", "is_told"), [(1.0, False), (2.0, True), (np.nan, True)])
def test_two_traces_that_differ_in_a_constant_are_reported_where_it_is_used(value, is_told):
    one, other = Variable(), Variable()
    first = program([equation("add", [one], stack="noise")], consts={one: np.ones(4)})
    second = program([equation("add", [other], stack="noise")], consts={other: np.full(4, value)})

    found = traced_program.difference(first, second, where)

    assert found == (Trait(kind="each_trace", where="noise") if is_told else None)


def constants(value):
    variable = Variable()
    return program([equation("add", [variable], stack="noise")], consts={variable: value})


def test_a_constant_that_holds_nan_is_the_same_in_two_traces():
    first, second = (constants(np.array([1.0, np.nan])) for _ in range(2))

    assert traced_program.difference(first, second, where) is None


def test_constants_of_a_kind_of_their_own_are_compared_as_they_compare_themselves():
    class Key:
        shape, dtype, nbytes = (), "key<fry>", 8

        def __init__(self, seed):
            self.seed = seed

        def __eq__(self, other):
            return np.array(self.seed == other.seed)

        __hash__ = None

    assert traced_program.difference(constants(Key(1)), constants(Key(1)), where) is None
    assert traced_program.difference(constants(Key(1)), constants(Key(2)), where)


def test_large_constants_are_taken_to_be_the_same(monkeypatch):
    monkeypatch.setattr(traced_program, "LARGE_CONSTANT_BYTES", 32)

    assert traced_program.difference(constants(np.zeros(3)), constants(np.ones(3)), where)
    assert traced_program.difference(constants(np.zeros(4)), constants(np.ones(4)), where) is None


def test_callbacks_are_found_within_other_equations():
    inner = Plain(eqns=[equation("pure_callback", stack="jvp(numpy_double)")], invars=[])

    program = Plain(eqns=[equation("jit", jaxpr=inner)])
    found = list(traced_program.callbacks_in(program, lambda _: "the layer 'numpy_double', model.py, line 3"))

    assert found == ["pure_callback in the layer 'numpy_double', model.py, line 3"]
    assert list(traced_program.callbacks_in(program, lambda _: "")) == ["pure_callback"]

    def callers(each):
        return "the caller" if each.primitive.name == "jit" else ""

    assert list(traced_program.callbacks_in(program, callers)) == ["pure_callback in the caller"]


def test_place_of_an_operation_is_that_of_its_first_equation_that_has_one():
    nowhere, there = equation("eig"), equation("eig")
    program = Plain(eqns=[nowhere, equation("jit", jaxpr=Plain(eqns=[equation("add"), there], invars=[]))])

    def where(each):
        return "model.py, line 3" if each is there else "" if each is nowhere else "elsewhere"

    assert traced_program.place_of("eig", program, where) == "model.py, line 3"
    assert traced_program.place_of("schur", program, where) == ""
    called = Plain(eqns=[equation("jit", jaxpr=Plain(eqns=[nowhere], invars=[]))])
    assert traced_program.place_of("eig", called, where) == "elsewhere"  # the place of its caller
    assert traced_program.place_of("eig", Plain(eqns=[nowhere]), where) == ""


@pytest.mark.parametrize(
    ("stack", "layer"),
    [
        ("", ""),
        ("functional/culprit", "culprit"),
        ("jvp(functional)/culprit", "culprit"),
        ("transpose(jvp(culprit))", "culprit"),
        ("transpose(jvp(vmap(functional)))/vmap(culprit)", "culprit"),
        ("checkpoint(transpose(jvp(vmap(culprit))))", "culprit"),
        ("jvp(functional)/culprit/normal", "culprit"),
        ("jvp(functional)/normal", ""),
    ],
)
def test_the_layer_is_the_innermost_name_that_is_a_layers(stack, layer):
    assert traced_program.layer_of(stack, {"culprit", "other"}) == layer
