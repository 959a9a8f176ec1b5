"""What is read from a compiled program, and from the compiler's refusal."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from slipway.components.preflight.program_costs import WITHOUT_EACH, program_costs, refusal
from slipway.components.preflight.question_and_answer import Loop, Slice

ONE = Slice(name="v5e-4", generation="v5e", devices=4, topology="2x2", memory_bytes=2**34)
TEXT = """
  %all-reduce.1 = f32[256]{0} all-reduce(%a), replica_groups={{0,1,2,3}}, to_apply=%add
  %all-reduce.2 = f32[256]{0} all-reduce(%b), replica_groups={{0,1,2,3}}, to_apply=%add
"""


@pytest.fixture
def program():
    held = SimpleNamespace(
        argument_size_in_bytes=100, output_size_in_bytes=50, alias_size_in_bytes=40, temp_size_in_bytes=7
    )
    return SimpleNamespace(
        cost_analysis=lambda: {"flops": 8.0, "bytes accessed": 9.0},
        memory_analysis=lambda: held,
        as_text=lambda: TEXT,
    )


def devices():
    return [SimpleNamespace(coords=(x, y, 0)) for y in range(2) for x in range(2)]


def test_collectives_of_one_kind_and_group_are_told_as_one(program):
    costs = program_costs(program, batch_size=64, where=ONE, devices=devices())

    assert (costs.peak_bytes, costs.flops, costs.moved_bytes) == (117, 8.0, 9.0)
    (sent,) = costs.collectives
    assert (sent.kind, sent.count, sent.devices, sent.shape) == ("all-reduce", 2, 4, "2x2")
    assert costs.collective_bytes == sent.result_bytes == 2 * 256 * 4


def test_memory_and_collectives_of_a_cpu_say_nothing_of_a_tpu(program):
    costs = program_costs(program, batch_size=64, where=replace(ONE, generation=""), devices=devices())

    assert (costs.peak_bytes, costs.collectives, costs.flops) == (0, (), 8.0)


LOOP = """
%body (b: (s32[], f32[8,4])) -> (s32[], f32[8,4]) {
  %b = (s32[], f32[8,4]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%b), index=0
  %x = f32[8,4]{1,0} get-tuple-element(%b), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %y = f32[8,8]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  %sum = f32[8,4]{1,0} all-reduce(%x), replica_groups={{0,1,2,3}}, to_apply=%add
  ROOT %all = (s32[], f32[8,4]{1,0}) tuple(%next, %x)
}

%ends (c: (s32[], f32[8,4])) -> pred[] {
  %c = (s32[], f32[8,4]{1,0}) parameter(0)
  %j = s32[] get-tuple-element(%c), index=0
  %last = s32[] constant(30)
  ROOT %lt = pred[] compare(%j, %last), direction=LT
}

ENTRY %main (x.1: f32[8,4]) -> f32[8,4] {
  %x.1 = f32[8,4]{1,0} parameter(0)
  %zero = s32[] constant(0)
  %begun = (s32[], f32[8,4]) tuple(%zero, %x.1)
  %a = (s32[], f32[8,4]) while(%begun), condition=%ends, body=%body, metadata={op_name="jvp(lstm)/while"}
  %b.1 = (s32[], f32[8,4]) while(%a), condition=%ends, body=%body, metadata={op_name="lstm/while"}
  %c.1 = (s32[], f32[8,4]) while(%begun), condition=%ends, body=%body, metadata={op_name="jit/sort"}
  ROOT %d = f32[8,4]{1,0} get-tuple-element(%a), index=1
}
"""


def test_turns_of_a_loop_are_counted_and_those_of_the_users_are_told(program):
    program.as_text = lambda: LOOP
    program.cost_analysis = lambda: {"flops": 1600.0, "bytes accessed": 9.0}

    costs = program_costs(program, batch_size=64, where=ONE, devices=devices(), layers={"lstm"})

    # Three loops have the same body: one of them turns who knows how often.
    assert costs.flops == 1600 + (30 + 1 + 30 - 3) * 2 * 8 * 8 * 4
    assert [(each.count, each.result_bytes) for each in costs.collectives] == [(61, 61 * 8 * 4 * 4)]
    # The second begins where the first has ended.
    assert costs.loops == (Loop(layer="lstm", turns=30), Loop(layer="lstm", turns=None))


@pytest.mark.parametrize(
    ("turns", "moved_bytes", "is_told"), [(7, 3e5, False), (7, 1e4, True), (17, 3e5, True), (17, 1e9, True)]
)
def test_a_few_turns_that_move_next_to_nothing_are_not_told(program, turns, moved_bytes, is_told):
    """As of a Discretization, which searches among its boundaries."""
    again = (
        '  %b.1 = (s32[], f32[8,4]) while(%a), condition=%ends, body=%body, metadata={op_name="lstm/while"}\n'
    )
    text = LOOP.replace("constant(30)", f"constant({turns})").replace(again, "")
    program.as_text = lambda: text
    program.cost_analysis = lambda: {"flops": 1600.0, "bytes accessed": moved_bytes}

    costs = program_costs(program, batch_size=64, where=ONE, devices=devices(), layers={"lstm"})

    assert costs.loops == ((Loop(layer="lstm", turns=turns),) if is_told else ())


def test_turns_are_not_counted_where_our_count_is_not_the_compilers(program):
    program.as_text = lambda: LOOP

    costs = program_costs(program, batch_size=64, where=ONE, devices=devices(), layers={"lstm"})

    assert (costs.flops, costs.moved_bytes) == (8.0, 9.0)
    assert [each.count for each in costs.collectives] == [1]
    assert costs.loops == (Loop(layer="lstm", turns=None),)


def test_refusal_for_lack_of_memory_has_its_numbers_and_the_layer():
    told = refusal(
        8,
        'RESOURCE_EXHAUSTED: Used 20.00G of 15.75G hbm. op_name="jit(step)/jvp(functional)/wide/dot_general"',
        compile_s=1.5,
        layers={"wide", "narrow"},
    )

    assert told.is_out_of_memory
    assert (told.error, told.error_remedy) == ("it needs more memory than a device has", "")
    assert (told.peak_bytes, told.available_bytes) == (20 * 2**30, round(15.75 * 2**30))
    assert told.error_layer == "wide"
    assert told.compile_s == 1.5


LU = "UNIMPLEMENTED: Only F32 and C64 types are implemented in LuDecomposition; got shape bf16[9,9]: @ 0x7f"
VMEM = "RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem. Used 33.50M of 16.00M vmem."
SCOPED = "RESOURCE_EXHAUSTED: Scoped allocation with size 17.5M and limit 16.00M exceeded scoped vmem limit"


@pytest.mark.parametrize(
    ("message", "operation", "words", "remedy"),
    [
        (
            "MLIR translation rule for primitive 'eig' not found for platform tpu",
            "eig",
            "'eig' has no",
            "another",
        ),
        (LU, "lu", "in 16 bits, which a TPU does in float32 only", 'ops.cast(values, "float32")'),
        (
            "Mosaic kernels cannot be automatically partitioned.",
            "pallas_call",
            "cannot be divided",
            "shard_map",
        ),
        (VMEM, "", "the memory within the chip (VMEM)", "train.batch_size"),
        (SCOPED, "", "the memory within the chip (VMEM)", "train.batch_size"),
    ],
)
def test_known_refusals_have_plain_words_a_place_and_a_remedy(message, operation, words, remedy):
    places = {operation: "the layer 'culprit', model.py, line 3"} if operation else {}

    told = refusal(8, message, compile_s=1.5, place_of=lambda asked: places.get(asked, ""))

    assert told.error.startswith("the layer 'culprit', model.py, line 3: ") == bool(operation)
    assert words in told.error
    assert remedy in told.error_remedy
    assert (told.error_cause, told.is_out_of_memory) == ("compiler", False)
    assert "UNIMPLEMENTED" not in told.error
    assert not refusal(8, message, compile_s=1.5).error.startswith(":")


def test_other_refusals_are_quoted_at_the_end_without_the_compilers_stack():
    told = refusal(8, "INTERNAL: Bad shape\n of it: @ 0x7f0243af2ea2 xla::Xla() @ 0x7f0", compile_s=1.5)

    assert told.error == 'the compiler refuses it; its reason: "INTERNAL: Bad shape of it"'
    assert told.error_remedy == WITHOUT_EACH
    assert refusal(8, "", compile_s=1.5).error == "the compiler gives no reason"
