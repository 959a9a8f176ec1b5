"""Pusher: publishes the blessed model, and only that."""

import logging
from pathlib import Path

from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.types.standard_artifacts import Model, ModelBlessing, PushedModel
from tfx.utils.path_utils import serving_model_path

from components.errors import ComponentError
from components.pusher.destination import push

_log = logging.getLogger(__name__)


@component
def Pusher(  # noqa: N802 (component constructors are nouns)
    model: InputArtifact[Model],
    blessing: InputArtifact[ModelBlessing],
    pushed_model: OutputArtifact[PushedModel],
    base: Parameter[str],
) -> None:
    """Publishes the model when it is blessed; else pushes nothing and says so.

    Args:
        model: the Trainer's; its SavedModel lies in the artifact's folder for serving.
        blessing: the gate's answer about this model: the property `blessed`, and the file `BLESSED`.
        pushed_model: gets the properties that stock components set: `pushed` (1 or 0) and, when pushed,
            `pushed_destination` (the version's directory or gs:// address) and `pushed_version`. Nothing is
            copied into it.
        base: the directory or gs:// folder that a model server watches.

    Raises:
        ComponentError: the blessing says yes but its file is gone, or the model cannot be published.
    """
    if blessing.get_int_custom_property("blessed") != 1:
        pushed_model.set_int_custom_property("pushed", 0)
        _log.warning("Not pushed: %s is not blessed (%s).", model.uri, blessing.uri)
        return
    if not Path(blessing.uri, "BLESSED").is_file():
        raise ComponentError(
            f"{blessing.uri} is recorded as a blessing, but holds no file BLESSED; nothing is pushed.",
            hint="let the gate judge again: python local_runner.py run --from ModelGate",
        )
    published = push(Path(serving_model_path(model.uri)), base=base)
    pushed_model.set_int_custom_property("pushed", 1)
    pushed_model.set_string_custom_property("pushed_destination", published.address)
    pushed_model.set_string_custom_property("pushed_version", str(published.version))
    done = "was there already, nothing was pushed" if published.was_there else "pushed"
    _log.info("Version %d %s: %s.", published.version, done, published.address)
