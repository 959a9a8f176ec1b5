"""How often the loops of a compiled program turn, and the operations of its matrices."""

import math

import pytest

from slipway.components.preflight.hlo import collectives
from slipway.components.preflight.hlo_loops import Loops

# As libtpu 0.0.42.1 writes a loop of JAX's, with the counter of the inner one passed in.
PROGRAM = """HloModule jit_step, is_scheduled=true

%fused (p.1: bf16[128,64], p.2: bf16[64,32]) -> bf16[128,32] {
  %p.1 = bf16[128,64]{1,0:T(8,128)(2,1)S(1)} parameter(0)
  %p.2 = bf16[64,32]{1,0:T(8,128)(2,1)} parameter(1)
  ROOT %convolution.1 = bf16[128,32]{1,0:T(8,128)} convolution(%p.1, %p.2), dim_labels=bf_io->bf
}

%in_body (arg: (s32[], bf16[128,64], bf16[64,32], s32[])) -> (s32[], bf16[128,64], bf16[64,32], s32[]) {
  %arg = (s32[]{:T(128)}, bf16[128,64]{1,0}, bf16[64,32]{1,0}, s32[]{:T(128)}) parameter(0)
  %i = s32[]{:T(128)} get-tuple-element(%arg), index=0
  %x = bf16[128,64]{1,0} get-tuple-element(%arg), index=1
  %w = bf16[64,32]{1,0} get-tuple-element(%arg), index=2
  %step = s32[]{:T(128)} get-tuple-element(%arg), index=3
  %y = bf16[128,32]{1,0} fusion(%x, %w), kind=kOutput, calls=%fused
  %next = s32[]{:T(128)} add(%i, %step)
  ROOT %all = (s32[]{:T(128)}, bf16[128,64]{1,0}, bf16[64,32]{1,0}, s32[]) tuple(%next, %x, %w, %step)
}

%in_ends (arg.2: (s32[], bf16[128,64], bf16[64,32], s32[])) -> pred[] {
  %arg.2 = (s32[]{:T(128)}, bf16[128,64]{1,0}, bf16[64,32]{1,0}, s32[]) parameter(0)
  %end = s32[]{:T(128)} constant(INNER_END)
  %i.2 = s32[]{:T(128)} get-tuple-element(%arg.2), index=0
  ROOT %lt = pred[]{:T(512)} compare(%i.2, %end), direction=LT
}

%outer_body (arg.3: (s32[], bf16[128,64], bf16[64,32])) -> (s32[], bf16[128,64], bf16[64,32]) {
  %arg.3 = (s32[]{:T(128)}, bf16[128,64]{1,0}, bf16[64,32]{1,0}) parameter(0)
  %i.3 = s32[]{:T(128)} get-tuple-element(%arg.3), index=0
  %x.3 = bf16[128,64]{1,0} get-tuple-element(%arg.3), index=1
  %w.3 = bf16[64,32]{1,0} get-tuple-element(%arg.3), index=2
  %two = s32[]{:T(128)} constant(2)
  %one = s32[]{:T(128)} constant(1)
  %begun = (s32[], bf16[128,64]{1,0}, bf16[64,32]{1,0}, s32[]) tuple(%one, %x.3, /*index=2*/%w.3, %two)
  %inner = (s32[], bf16[128,64], bf16[64,32], s32[]) while(%begun), condition=%in_ends, body=%in_body, INNER
  %sent = f32[100]{0} all-reduce(%x.3), replica_groups={{0,1}}, to_apply=%sum
  %next.3 = s32[]{:T(128)} add(%i.3, %one)
  ROOT %all.3 = (s32[], bf16[128,64], bf16[64,32]) tuple(%next.3, %x.3, %w.3)
}

%outer_ends (arg.4: (s32[], bf16[128,64], bf16[64,32])) -> pred[] {
  %arg.4 = (s32[]{:T(128)}, bf16[128,64]{1,0}, bf16[64,32]{1,0}) parameter(0)
  %i.4 = s32[]{:T(128)} get-tuple-element(%arg.4), index=0
  %end.4 = s32[]{:T(128)} constant(10)
  ROOT %lt.4 = pred[]{:T(512)} compare(%i.4, %end.4), direction=DIRECTION
}

ENTRY %main.1 (x.5: bf16[128,64], w.5: bf16[64,32]) -> bf16[128,32] {
  %x.5 = bf16[128,64]{1,0} parameter(0)
  %w.5 = bf16[64,32]{1,0} parameter(1)
  %zero = s32[]{:T(128)} constant(0)
  %copied = s32[]{:T(128)} copy(%zero)
  %begun.5 = (s32[], bf16[128,64], bf16[64,32]) tuple(BEGIN, %x.5, %w.5)
  %outer = (s32[], bf16[128,64], bf16[64,32]) while(%begun.5), condition=%outer_ends, body=%outer_body, OUTER
  ROOT %dot = bf16[128,32]{1,0} dot(%x.5, %w.5), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
START = "%going = bf16[128,32]{1,0} async-start(%x.5, %w.5), calls=%fused"
DONE = "\n  %done = bf16[128,32]{1,0} async-done(%going), calls=%fused"
PRODUCT = 2 * 128 * 64 * 32


def program(end=8, direction="LT", begin="%copied", told=""):
    text = PROGRAM.replace("INNER_END", str(end)).replace("DIRECTION", direction)
    inner, outer = (
        f'metadata={{op_name="jit(step)/jvp(outer)/while{within}"}}' for within in ("/body/inner/while", "")
    )
    return text.replace("BEGIN", begin).replace("INNER", inner).replace("OUTER", outer + told)


@pytest.mark.parametrize(
    ("changes", "outer", "inner"),
    [
        ({}, 10, 4),  # 1, 3, 5, 7
        ({"end": 9}, 10, 4),
        ({"end": 1}, 10, 0),
        ({"begin": "%x.5"}, None, 4),
        ({"direction": "NE"}, None, 4),
        ({"direction": "NE", "told": ', backend_config={"known_trip_count":{"n":"7"}}'}, 7, 4),
    ],
)
def test_turns_are_counted_from_constants_and_others_are_unknown(changes, outer, inner):
    text = program(**changes)
    loops = Loops(text)

    assert [(each.name, each.turns) for each in loops.found] == [
        ("jit(step)/jvp(outer)/while", outer),
        ("jit(step)/jvp(outer)/while/body/inner/while", inner),
    ]
    # A turn multiplies and adds to the counter; the loop within one is not looked into.
    of_a_turn = 2 * (128 * 64 + 64 * 32 + 128 * 32) + 3 * 4
    more = (outer or 1) * max(inner - 1, 0) * of_a_turn
    assert [each.more_bytes for each in loops.found] == [math.inf, more]
    assert loops.matrix_flops(once=True) == 2 * PRODUCT
    assert loops.matrix_flops() == ((outer or 1) * max(inner, 1) + 1) * PRODUCT
    [sent] = collectives(text)
    assert loops.times[sent.computation] == (outer or 1)


@pytest.mark.parametrize("begins", ["%arg.5", "%before"])
def test_turns_of_a_loop_that_begins_with_what_is_not_put_together_there_are_unknown(begins):
    begun = "  %arg.5 = (s32[], bf16[128,64]) parameter(2)\n  %before = (s32[]) opt-barrier(%arg.5)\n"
    text = (
        program().replace("  %outer =", f"{begun}  %outer =").replace("while(%begun.5)", f"while({begins})")
    )
    # The counter stands second, as in `ops.while_loop(..., (x, i))`.
    for old, new in (("(%arg.3), index=0", "(%arg.3), index=1"), ("(%arg.4), index=0", "(%arg.4), index=1")):
        text = text.replace(old, new)
    text = text.replace("tuple(%next.3, %x.3, %w.3)", "tuple(%x.3, %next.3, %w.3)")
    assert [each.turns for each in Loops(text).found] == [None, 4]


def test_a_program_without_a_loop_or_without_a_text():
    assert Loops("").found == ()
    assert Loops("").matrix_flops() == 0
    assert Loops("").times == {}


def convolution(window="", labels="b01f_01io->b01f", left="8,10,10,4", right="3,3,4,16", result="8,8,8,16"):
    return Loops(
        "ENTRY %main (a: f32[1]) -> f32[1] {\n"
        f"  %a = f32[{left}]{{3,2,1,0}} parameter(0)\n"
        f"  %b = f32[{right}]{{3,2,1,0}} parameter(1)\n"
        f"  ROOT %c = f32[{result}]{{3,2,1,0}} convolution(%a, %b){window}, dim_labels={labels}\n}}\n"
    ).matrix_flops()


def test_convolutions_are_counted_without_their_padding_and_gaps():
    assert convolution(", window={size=3x3}") == 2 * 8 * 8 * 8 * 16 * 9 * 4
    # As many places as before; the window meets 28 of the 30 along an axis.
    padded = convolution(", window={size=3x3 pad=1_1x1_1}", result="8,10,10,16")
    assert padded == 2 * 8 * 28 * 28 * 16 * 4
    assert convolution(", window={size=3x3 stride=2x2}", result="8,4,4,16") == 2 * 8 * 4 * 4 * 16 * 9 * 4
    # Of 19 places every other one is a value: each place of the window meets 9 or 8 of the 17.
    spread = convolution(", window={size=3x3 lhs_dilate=2x2}", result="8,17,17,16")
    assert spread == 2 * 8 * (9 + 8 + 9) ** 2 * 16 * 4
    grouped = convolution(", window={size=3x3}, feature_group_count=4", right="3,3,1,16")
    assert grouped == 2 * 8 * 8 * 8 * 16 * 9


def test_what_is_written_in_a_way_not_known_counts_nothing():
    assert convolution(left="8,<=10,10,4") == 0
    assert convolution(labels="b01f_01io->?01f?") == 0
    odd = "ENTRY %m (a: f32[1]) -> f32[1] {\n  %a = f32[<=4,8]{1,0} parameter(0)\n"
    assert (
        Loops(f"{odd}  ROOT %c = f32[4,4] dot(%a, %a), lhs_contracting_dims={{1}}\n}}\n").matrix_flops() == 0
    )


def test_a_computation_is_counted_from_all_places_that_reach_it():
    """XLA counts it at each call, the body of a loop once."""
    again = "  %again = bf16[128,32]{1,0} fusion(%x.3, %w.3), kind=kOutput, calls=%fused\n  %next.3 ="
    last = "  %last = bf16[128,32]{1,0} call(%x.5, %w.5), to_apply=%fused\n  ROOT %dot ="
    text = program().replace("  %next.3 =", again, 1).replace("  ROOT %dot =", last, 1)
    loops = Loops(text)
    assert loops.times["fused"] == 10 * 4 + 10 + 1
    assert loops.matrix_flops() == (51 + 1) * PRODUCT
    assert loops.matrix_flops(once=True) == (3 + 1) * PRODUCT
    one, other = (
        program().replace("ROOT %dot =", f"{each}\n  ROOT %dot =") for each in (START, START + DONE)
    )
    assert Loops(one).times["fused"] == Loops(other).times["fused"] == 10 * 4 + 1
