"""Keeps the results of a run's nodes, and the saved state of incomplete ones, for later runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from slipway.pipeline.engine.journal import Journal, writing
from slipway.pipeline.fingerprint.fingerprint import Fingerprint
from slipway.pipeline.plan.make_plan import Plan
from slipway.pipeline.plan.node_fingerprints import found_key, with_found
from slipway.pipeline.plan.state_folders import KeptStates, is_state_kept
from slipway.pipeline.runs.graph import Node
from slipway.pipeline.runs.history import result_of
from slipway.pipeline.runs.record import Files, NodeRecord, artifacts_in

NOT_CACHED = "; not cached: "
"""What is appended to why a node ran if its result is not that of its fingerprint."""


class Results:
    """Keeps no results for later runs. A subclass says what it keeps instead."""

    def begin(self) -> set[str]:
        """Discard saved state that must not be continued, before the first node starts.

        Returns:
            The nodes that are skipped because a condition was not met in an earlier run.
        """
        return set()

    def state_folder(self, node_id: str) -> Path | None:  # noqa: ARG002
        """Return the folder of the state that a node continues from, which need not exist.

        None if no state is kept.
        """
        return None

    def keep(self, entry: NodeRecord, files: Files) -> None:
        """Keep the result of a node that is done.

        Args:
            files: the files of its outputs, as `kept_files` returns them.
        """

    def leave_out(self, entry: NodeRecord) -> None:
        """Record that a condition was not met; `entry.why` says which."""

    def fail(self, entry: NodeRecord) -> None:
        """Record that an attempt at a node failed."""


@dataclass
class CachedResults(Results):
    """Results that later runs reuse, stored by the nodes' fingerprints.

    Args:
        journal: the run's journal. The nodes in its record receive the keys of their fingerprints, and its
            history stores the results.
        changes_since: returns in words what has changed of the code and data of a node that has just ended
            since its fingerprint. If anything, neither its result nor its state is kept, nor those of the
            nodes that read its result in this run: their keys stand for what the code and data had been.
        states: the saved states; None: all of the output folder's.

    Attributes:
        prints: the nodes' fingerprints, as far as they are known now.
    """

    journal: Journal
    plan: Plan
    changes_since: Callable[[str], Sequence[str]] = lambda _node_id: ()
    states: KeptStates | None = None
    prints: dict[str, Fingerprint] = field(init=False)
    _changed: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.prints = dict(self.plan.prints)
        self.record, self.history = self.journal.record, self.journal.history
        self._states = self.states or KeptStates(self.history.output)
        # In a run in steps, another process ran the nodes before this one.
        self._changed.update(entry.id for entry in self.record.nodes if NOT_CACHED in entry.why)

    def begin(self) -> set[str]:
        """As `Results.begin`."""
        decisions = self.plan.decisions
        for entry in self.record.nodes:
            was_begun = entry.started_s is not None
            if not is_state_kept(entry.id, self.plan.graph, decisions, was_begun=was_begun):
                self._forget_state(entry.id)
        return {node_id for node_id, decision in decisions.items() if decision.is_unmet}

    def state_folder(self, node_id: str) -> Path:
        """As `Results.state_folder`."""
        return self._states.folder(self.prints[node_id].key, node_id)

    def keep(self, entry: NodeRecord, files: Files) -> None:
        """As `Results.keep`; what a resolver found changes the fingerprints of the nodes after it.

        Raises:
            PipelineError: the record could not be written.
        """
        node = self.plan.graph[entry.id]
        if node.found is not None:
            self._note_found(node, found_key(entry.outputs))
        entry.key = self.prints[entry.id].key
        # Unpredictable fingerprints are not stored: no later run can have the same.
        is_known = entry.execution_id is not None or node.finds_reference or node.found is not None
        if is_known and not self._finds_itself(node, entry):
            self._remember(entry, files=files)
        self._forget_state(entry.id)

    def leave_out(self, entry: NodeRecord) -> None:
        """As `Results.leave_out`.

        Raises:
            PipelineError: the record could not be written.
        """
        self._remember(entry, files={}, unmet=entry.why)

    def fail(self, entry: NodeRecord) -> None:
        """As `Results.fail`; discards state that was made with other code or data."""
        if self._what_changed(entry.id):
            self._forget_state(entry.id)

    def _note_found(self, node: Node, found: str) -> None:
        """Update the fingerprints with a resolver's result, if a node of this run changed what it finds."""
        if node.found == found:
            return
        self.prints = with_found(self.prints, node.id, found)
        for entry in self.record.nodes:
            if entry.state == "waiting":
                entry.key = self.prints[entry.id].key
        with writing(self.record):
            self.history.save_fingerprints(self.record.run_id, self.prints)

    def _finds_itself(self, node: Node, entry: NodeRecord) -> bool:
        """Return True if a resolver found what an earlier run made from the same, e.g. with --no-cache.

        The key stands for the latest other model or data, so this is no answer for a later run with the key.
        """
        if not (node.finds_baseline or node.finds_reference):
            return False
        kind = "Model" if node.finds_baseline else "ExampleStatistics"
        makers = [n.id for n in self.plan.graph.nodes if kind in n.outputs.values()]
        # What is made anew in every run has the same key each time.
        own = {each: self.prints[each].key for each in makers if each not in node.looks_at}
        found = {each["uri"] for each in artifacts_in(entry.outputs)}
        for run in self.history.runs():
            made = [each for each in run.nodes if each.is_done and not each.is_resolver]
            if run.run_id != self.record.run_id and any(
                each["uri"] in found for maker in made for each in artifacts_in(maker.outputs)
            ):
                return any(maker.key == own.get(maker.id) for maker in made)
        return False

    def _remember(self, entry: NodeRecord, *, files: Files, unmet: str = "") -> None:
        if changed := self._what_changed(entry.id):
            entry.why += f"{NOT_CACHED}{changed}"
            return
        result = result_of(entry, self.record, files=files, unmet=unmet)
        with writing(self.record):
            self.history.remember(self.prints[entry.id].key, result)

    def _what_changed(self, node_id: str) -> str:
        """Tell of a change of code or data while this node ran, or one whose result it read.

        Empty if there is none, so that the node's result is that of its key.
        """
        node = self.plan.graph[node_id]
        read = next((up for up in node.upstream if up in self._changed and up not in node.gates), "")
        words = f"{read}'s code or data changed while that ran" if read else ""
        if own := self.changes_since(node_id):
            words = f"its code or data changed while it ran: {own[0]}"
        (self._changed.add if words else self._changed.discard)(node_id)
        return words

    def _forget_state(self, node_id: str) -> None:
        self._states.forget(self.prints[node_id].key, node_id)
