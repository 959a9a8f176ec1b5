"""What is read from a compiled program, and from the compiler's refusal."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from slipway.components.preflight.program_costs import (
    missing_program,
    program_costs,
    refusal,
    without_program,
)
from slipway.components.preflight.question_and_answer import Slice

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


def test_refusal_for_lack_of_memory_has_its_numbers_and_the_layer():
    told = refusal(
        8,
        'RESOURCE_EXHAUSTED: Used 20.00G of 15.75G hbm. op_name="jit(step)/jvp(functional)/wide/dot_general"',
        compile_s=1.5,
        layers={"wide", "narrow"},
    )

    assert told.is_out_of_memory
    assert (told.peak_bytes, told.available_bytes) == (20 * 2**30, round(15.75 * 2**30))
    assert told.error_layer == "wide"
    assert told.compile_s == 1.5


def test_operation_without_a_program_is_told_in_plain_words():
    message = "MLIR translation rule for primitive 'eig' not found for platform tpu"
    refused = refusal(8, message, compile_s=1.5)

    told = without_program(refused, missing_program(refused.error), "the layer 'culprit', model.py, line 3")

    assert told.error == "the layer 'culprit', model.py, line 3: the operation 'eig' has no program for a TPU"
    assert "keras.ops" in told.error_remedy
    assert without_program(refused, "eig", "").error == "the operation 'eig' has no program for a TPU"
    assert missing_program("RESOURCE_EXHAUSTED: Used 20.00G of 15.75G hbm.") == ""
