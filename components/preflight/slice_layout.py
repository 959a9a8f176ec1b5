"""How a slice is divided: what each host reads, where the mesh lies, what each collective costs. Pure."""

from slipway.components.preflight.amounts import duration, memory
from slipway.components.preflight.chip_specs import CHIPS
from slipway.components.preflight.question_and_answer import Answer, Collective, MeshAxis, Question
from slipway.components.preflight.roofline import Estimate, collective_s


def layout_lines(
    question: Question, answer: Answer, estimate: Estimate, input_bytes_per_s: float | None
) -> list[str]:
    """Return how a slice of several devices is divided, as lines; none for one device.

    Args:
        input_bytes_per_s: the rate at which all hosts together must read streamed files; None if unknown.
    """
    where = question.slice
    if where.devices == 1:
        return []
    lines = [_hosts_line(question, estimate, input_bytes_per_s)] if where.hosts > 1 else []
    if answer.mesh:
        lines.append(f"  ~ mesh: {'; '.join(_axis(each) for each in answer.mesh if each.devices > 1)}")
    lines += [_collective_line(each, where.generation) for each in answer.step.collectives]
    return lines


def _hosts_line(question: Question, estimate: Estimate, input_bytes_per_s: float | None) -> str:
    hosts = question.slice.hosts
    rate = (
        ""
        if input_bytes_per_s is None
        else f", {input_bytes_per_s / hosts / 2**20:,.0f} MiB/s of its files, where they are streamed"
    )
    price = estimate.price_usd
    costs = "" if price is None else f"costs {price / hosts:.2f} USD an hour and "
    return (
        f"  ~ estimate: {hosts} hosts of {estimate.chips // hosts} chips; each {costs}reads "
        f"{estimate.batch_size / hosts:,.0f} of a step's {estimate.batch_size:,} examples, at most "
        f"{estimate.examples_per_s / hosts:,.0f} examples/s{rate}"
    )


def _axis(axis: MeshAxis) -> str:
    hosts = "one host" if axis.hosts == 1 else f"{axis.hosts} hosts"
    return f"{axis.name} {axis.devices} over {axis.shape} chips of {hosts}"


def _collective_line(sent: Collective, generation: str) -> str:
    times = f"{sent.count} x " if sent.count > 1 else ""
    if sent.chips == 1:
        return f"  ~ estimate: {times}{sent.kind} within a chip: {memory(sent.result_bytes)}, not over links"
    least_s = collective_s(sent, CHIPS[generation])
    return (
        f"  ~ estimate: {times}{sent.kind} over {sent.shape} chips: {memory(sent.result_bytes)} in at least "
        f"{duration(least_s)} ({sent.links} of a chip's {CHIPS[generation].links} links, {sent.hops} hops)"
    )
