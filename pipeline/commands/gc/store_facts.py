"""Reads executions and artifacts in use from the SQLite metadata store, without importing ML Metadata.

The queries fit version 10 of ML Metadata's database schema.
"""

import contextlib
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path

from slipway.pipeline.errors import UsageError

# ModelGate and TFX's Evaluator record the blessed model in these properties. A negative `current_model_id`
# means that the blessing was retired; see `slipway.pipeline.plan.baseline_changes`.
_BLESSED = """
    SELECT Artifact.uri, model.string_value FROM Artifact
    JOIN ArtifactProperty AS blessed
      ON blessed.artifact_id = Artifact.id AND blessed.name = 'blessed' AND blessed.int_value = 1
    LEFT JOIN ArtifactProperty AS model
      ON model.artifact_id = Artifact.id AND model.name = 'current_model'
    LEFT JOIN ArtifactProperty AS number
      ON number.artifact_id = Artifact.id AND number.name = 'current_model_id'
    WHERE COALESCE(number.int_value, 0) >= 0
    ORDER BY Artifact.id
"""
# The DataGate's verdicts on the data of each span that passed.
_PASSED = """
    SELECT Artifact.uri, span.int_value FROM Artifact
    JOIN Type ON Type.id = Artifact.type_id AND Type.name = 'schemas.DataVerdict'
    LEFT JOIN ArtifactProperty AS span
      ON span.artifact_id = Artifact.id AND span.name = 'span'
    ORDER BY Artifact.id
"""
# A Pusher that reports a push without a destination left the model in its artifact's folder.
_PUSHED = """
    SELECT string_value FROM ArtifactProperty
    WHERE name = 'pushed_destination' AND string_value IS NOT NULL
    UNION
    SELECT Artifact.uri FROM Artifact
    JOIN ArtifactProperty AS pushed
      ON pushed.artifact_id = Artifact.id AND pushed.name = 'pushed' AND pushed.int_value = 1
    LEFT JOIN ArtifactProperty AS place
      ON place.artifact_id = Artifact.id AND place.name = 'pushed_destination'
    WHERE place.string_value IS NULL
"""
# TFX names the context of a node PIPELINE.NODE.
_EXECUTIONS = """
    SELECT own.execution_id, substr(node.name, length(pipeline.name) + 2) FROM Association AS own
    JOIN Context AS node ON node.id = own.context_id
    JOIN Type AS node_type ON node_type.id = node.type_id AND node_type.name = 'node'
    JOIN Association AS whole ON whole.execution_id = own.execution_id
    JOIN Context AS pipeline ON pipeline.id = whole.context_id
    JOIN Type AS pipeline_type ON pipeline_type.id = pipeline.type_id AND pipeline_type.name = 'pipeline'
"""


@dataclass(frozen=True)
class StoreFacts:
    """The facts about a metadata store that `gc` needs.

    Attributes:
        found: URIs of the artifacts that a Resolver can return: the latest blessing of each gate with its
            model, and the latest verdict of every span, because any span can be requested. Without the
            blessed model, no later model could be evaluated or blessed.
        pushed: the destinations of all pushed models.
        nodes: execution id, as text -> ids of the nodes that it may belong to.
    """

    found: Set[str] = frozenset()
    pushed: Set[str] = frozenset()
    nodes: Mapping[str, Set[str]] = field(default_factory=dict)


def read_store(store: Path) -> StoreFacts:
    """Read a store; one that does not exist or has no tables yet gives empty facts.

    Raises:
        UsageError: the store cannot be read.
    """
    if not store.exists():
        return StoreFacts()
    try:
        with contextlib.closing(
            sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True)
        ) as connection:
            if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'Artifact'").fetchone():
                return StoreFacts()
            blessed, passed, pushed, executions = (
                connection.execute(query).fetchall() for query in (_BLESSED, _PASSED, _PUSHED, _EXECUTIONS)
            )
    except sqlite3.Error as error:
        raise UsageError(
            f"{store} cannot be read: {error}.", hint="gc knows the tables of ML Metadata 1.17 to 1.21"
        ) from error
    latest = {Path(uri).parent: (uri, model or "") for uri, model in blessed}
    verdicts = {(Path(uri).parent, span): uri for uri, span in passed}
    nodes = defaultdict(set)
    for number, node_id in executions:
        nodes[str(number)].add(node_id)
    return StoreFacts(
        found={uri for each in latest.values() for uri in each} | set(verdicts.values()),
        pushed={place for (place,) in pushed if place},
        nodes=nodes,
    )
