"""Reads and writes Vertex AI's metadata: the blessings that its resolvers look for, and experiments."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from slipway.components.google_retries import patience
from slipway.pipeline.cloud.services.vertex import Vertex
from slipway.pipeline.errors import PipelineError

# The filter that TFX gives the service's resolver; see `artifact_query`.
_BLESSED = 'schema_title="tfx.ModelBlessing" AND state=LIVE AND metadata.blessed.number_value=1'
_LONGEST_DESCRIPTION = 1000
# The longest name of an experiment's run, which begins with the experiment's name: see ExperimentRun in
# google.cloud.aiplatform.
_LONGEST_RUN = 121
_SCHEMA_VERSION = "0.0.1"


@dataclass(frozen=True)
class Blessing:
    """A blessing that resolvers find.

    Attributes:
        name: the service's name of the artifact.
        run: the run that issued it.
    """

    name: str
    uri: str
    run: str
    at: datetime


class VertexMetadata(Vertex):
    """Vertex AI's metadata store in one project and region; raises the errors of `Vertex`."""

    def blessings(self, workload: str) -> Sequence[Blessing]:
        """Return the blessings of a workload's runs that resolvers find, the latest first."""
        with self._in_words("looking for blessed models"):
            asked = {
                "parent": self._parent,
                "filter": f'labels.slipway_workload="{workload}"',
                "read_mask": {"paths": ["name"]},
            }
            jobs = self._pipelines.list_pipeline_jobs(asked, **patience())
            runs = {each.name.rpartition("/")[2] for each in jobs}
            store = f"{self._parent}/metadataStores/default"
            listed = self._metadata.list_artifacts({"parent": store, "filter": _BLESSED}, **patience())
            found = [(each, run) for each in listed if (run := _run_of(each.uri, workload, runs))]
        blessings = [Blessing(each.name, each.uri, run, _moment(each.create_time)) for each, run in found]
        return sorted(blessings, key=lambda each: each.at, reverse=True)

    def retire(self, blessing: Blessing, *, why: str) -> None:
        """Make resolvers ignore a blessing; its verdict on the model stays.

        Args:
            why: the reason, which is kept in the artifact's description.
        """
        from google.cloud.aiplatform_v1.types import Artifact

        # The service leaves an artifact's state to its clients; resolvers look only for LIVE artifacts.
        retired = {
            "name": blessing.name,
            "state": Artifact.State.PENDING,
            "description": why[:_LONGEST_DESCRIPTION],
        }
        request = {"artifact": retired, "update_mask": {"paths": ["state", "description"]}}
        with self._in_words(f"retiring the blessing of {blessing.run}"):
            self._metadata.update_artifact(request, **patience())

    def note_run(
        self,
        experiment: str,
        run: str,
        *,
        settings: Mapping[str, str],
        metrics: Mapping[str, float],
        state: str,
    ) -> None:
        """Log a run to an experiment, as the service's own client does; logging it again replaces the entry.

        Args:
            experiment: its name; it is created if it does not exist.
            state: COMPLETE, FAILED or CANCELLED.

        Raises:
            PipelineError: the service refused, or the name belongs to an object of another kind.
        """
        noted = {"_params": dict(settings), "_metrics": dict(metrics), "_state": state}
        with self._in_words(f"logging the run to the experiment {experiment}"):
            parent = self._context(experiment, experiment, "system.Experiment", {"experiment_deleted": False})
            # A long name keeps its end, in which the runs of a workload differ.
            name = f"{experiment}-{run[-(_LONGEST_RUN - len(experiment) - 1) :]}"
            child = self._context(name, run, "system.ExperimentRun", noted)
            changed = {"context": {"name": child, "metadata": noted}, "update_mask": {"paths": ["metadata"]}}
            self._metadata.update_context(changed, **patience())
            self._metadata.add_context_children({"context": parent, "child_contexts": [child]}, **patience())

    def _context(self, name: str, title: str, schema: str, metadata: Mapping[str, object]) -> str:
        """Return the resource name of a context; create the context if it does not exist.

        Contexts of all kinds share one namespace: the service itself keeps each pipeline as a context of
        its name.
        """
        from google.api_core.exceptions import Conflict

        store = f"{self._parent}/metadataStores/default"
        there = f"{store}/contexts/{name}"
        asked = {
            "parent": store,
            "context_id": name,
            "context": {
                "display_name": title,
                "schema_title": schema,
                "schema_version": _SCHEMA_VERSION,
                "metadata": metadata,
            },
        }
        try:
            self._metadata.create_context(asked, **patience())
        except Conflict:
            kind = self._metadata.get_context(name=there, **patience()).schema_title
            if kind != schema:
                raise PipelineError(
                    f"{name} is already the name of a {kind} there, so it cannot be that of a {schema}",
                    hint="choose another name for cloud.vertex.experiment",
                ) from None
        return there

    @cached_property
    def _metadata(self) -> Any:
        from google.cloud.aiplatform_v1.services.metadata_service import MetadataServiceClient

        return MetadataServiceClient(**self._connection)


def _run_of(uri: str, workload: str, runs: set[str]) -> str:
    """Return the workload's run that an artifact's address names, ROOT/PROJECT/RUN/TASK/KEY; else empty.

    Args:
        runs: the runs that the service still lists; a run that was deleted there is recognised by its name.
    """
    own = re.compile(rf"{re.escape(workload)}-\d{{8}}-?\d{{6}}.*")
    return next((part for part in uri.split("/") if part in runs or own.fullmatch(part)), "")


def _moment(stamp: Any) -> datetime:
    return datetime.fromtimestamp(stamp.timestamp(), UTC)
