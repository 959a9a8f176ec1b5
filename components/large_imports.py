"""How TFX, TensorFlow and Beam are imported: without garbage collection, and without what few need.

They import scikit-learn, SciPy, NLTK, IPython, clients of Vertex AI and Kubernetes and more, for functions
that few pipelines call. Such an import is put off here until something of the module is used.
"""

import contextlib
import gc
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

PUT_OFF: Mapping[str, Sequence[str]] = {
    # scikit-learn, SciPy: wrappers for models, statistics of metrics, pictures, sparse matrices, tuners.
    "keras": ["keras.wrappers"],
    "keras._tf_keras.keras": ["keras.wrappers"],
    "tensorflow.python.keras.engine.training_arrays_v1": ["scipy.sparse:issparse"],
    "tensorflow.python.keras.engine.training_v1": ["scipy.sparse:issparse"],
    "tensorflow_model_analysis.utils.math_util": ["scipy.stats"],
    "tf_keras.src.engine.training_arrays_v1": ["scipy.sparse:issparse"],
    "tf_keras.src.engine.training_v1": ["scipy.sparse:issparse"],
    "tf_keras.src.preprocessing.image": ["scipy", "scipy.linalg", "scipy.ndimage"],
    # NLTK, SacreBLEU: metrics of texts.
    "tensorflow_model_analysis.metrics.bleu": ["sacrebleu", "sacrebleu.metrics:BLEUScore"],
    "tensorflow_model_analysis.metrics.rouge": ["nltk", "nltk.stem", "nltk.stem.porter"],
    # Jupyter's shell and widgets: what is shown in notebooks.
    "google.cloud.bigquery._tqdm_helpers": ["tqdm.notebook"],
    "keras.src.saving.file_editor": ["IPython"],
    "tensorflow_data_validation.utils.display_util": ["IPython.display:display", "IPython.display:HTML"],
    "tensorflow_model_analysis.view": [
        "tensorflow_model_analysis.view.widget_view:render_plot",
        "tensorflow_model_analysis.view.widget_view:render_slicing_attributions",
        "tensorflow_model_analysis.view.widget_view:render_slicing_metrics",
        "tensorflow_model_analysis.view.widget_view:render_time_series",
    ],
    # Clients of Vertex AI, Kubernetes, Pub/Sub, BigQuery, Dataflow, S3, Compute Engine.
    "apache_beam.io.aws.clients.s3.boto3_client": ["boto3"],
    "apache_beam.io.gcp.bigquery_tools": ["google.cloud.bigquery"],
    "apache_beam.io.gcp.pubsub": ["google.cloud.pubsub"],
    "apache_beam.runners.dataflow.dataflow_runner": ["google.cloud.dataflow"],
    "kfp.client.set_volume_credentials": [
        "kubernetes.client",
        "kubernetes.client.configuration:Configuration",
    ],
    "kfp.client.token_credentials_base": [
        "kubernetes.client",
        "kubernetes.client.configuration:Configuration",
    ],
    "tensorflow.python.distribute.cluster_resolver.gce_cluster_resolver": ["googleapiclient.discovery"],
    "tensorflow.python.tpu.client.client": ["googleapiclient.discovery"],
    "tfx.components.infra_validator.executor": [
        "tfx.components.infra_validator.model_server_runners.kubernetes_runner"
    ],
    "tfx.extensions.google_cloud_ai_platform.runner": [
        "tfx.extensions.google_cloud_ai_platform.prediction_clients",
        "tfx.extensions.google_cloud_ai_platform.training_clients",
    ],
    # Keras Tuner.
    "tfx.components.tuner.component": ["keras_tuner.engine", "keras_tuner.engine.base_tuner:BaseTuner"],
    "tfx.components.tuner.executor": [
        "keras_tuner.engine",
        "keras_tuner.engine.base_tuner:BaseTuner",
        "keras_tuner.engine.trial",
    ],
}
"""For each module: what it imports without using it before one of its functions is called.

`module:name` is a function that it imports from the module, or a class that it names in annotations, never
one that it derives from or gives to `isinstance`.
"""


@contextlib.contextmanager
def large_imports(*, keep: bool = False) -> Iterator[None]:
    """Make imports of TFX, TensorFlow and Beam quick: collect no garbage, and put off what few need.

    Inside the context nothing is collected: the imports create millions of objects that are never freed, and
    traversing them again and again takes half of their time (9.4 s with collection, 4.6 s without). After it
    they count as old: if they were new, the next two collections would traverse them all, 0.45 s each. From
    now on, also after the context, the modules of `PUT_OFF` import later what is listed there.

    Args:
        keep: all that exists after the imports stays until the process ends (`gc.freeze`): no collection, in
            it or in its forks, traverses it. For processes that are ours alone.
    """
    if not any(isinstance(finder, _PutOff) for finder in sys.meta_path):
        sys.meta_path.insert(0, _PutOff())
    was_enabled, modules = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if keep:
            gc.freeze()
        elif was_enabled and len(sys.modules) > modules:
            is_anything_frozen = gc.get_freeze_count() > 0  # traverses all that is: 0.2 s after TFX
            gc.freeze()
            if not is_anything_frozen:
                gc.unfreeze()  # into the oldest generation
        if was_enabled:
            gc.enable()


class _PutOff(MetaPathFinder):
    """Finds the modules of `PUT_OFF` as Python would; they see stand-ins when they are run."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in PUT_OFF:
            return None
        after = sys.meta_path[sys.meta_path.index(self) + 1 :]
        # Finders of old have no find_spec; Python passes over them, too.
        finds = [finder.find_spec for finder in after if hasattr(finder, "find_spec")]
        spec = next((spec for find in finds if (spec := find(name, path, target))), None)
        if spec and spec.loader:
            _run_with_stand_ins(spec.loader, name)
        return spec


def _run_with_stand_ins(loader: Loader, name: str) -> None:
    run = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        is_it = module.__name__ == name  # all modules of a zip file have one loader
        with _stand_ins(PUT_OFF[name]) if is_it else contextlib.nullcontext():
            run(module)

    with contextlib.suppress(AttributeError):  # a loader that cannot be changed imports everything at once
        loader.exec_module = exec_module  # type: ignore[method-assign]


@contextlib.contextmanager
def _stand_ins(entries: Sequence[str]) -> Iterator[None]:
    """Put stand-ins into the place of modules that are not imported yet, and take them out at the end."""
    made: dict[str, _StandIn] = {}
    presets: list[tuple[_StandIn, str]] = []
    for module, _, name in (entry.partition(":") for entry in entries):
        if not _is_to_come(module):
            continue
        stand_in = made.setdefault(module, _StandIn(module))
        package, _, last = module.rpartition(".")
        if package in made:
            setattr(made[package], last, stand_in)
        if name:
            setattr(stand_in, name, _later(module, name))
            presets.append((stand_in, name))
    before = {module: sys.modules[module] for module in made if module in sys.modules}
    sys.modules.update(made)
    for stand_in in made.values():
        stand_in.show()
    try:
        yield
    finally:
        for module, stand_in in made.items():
            was_here, outer = stand_in.leave(), before.get(module)
            # `outer` is that of a module that imported this one; in another thread it may have left by now.
            if was_here and isinstance(outer, _StandIn) and not outer.has_left:
                sys.modules[module] = outer
        for stand_in, name in presets:
            delattr(stand_in, name)


def _is_to_come(module: str) -> bool:
    """Return True if the module is not imported yet, but could be."""
    if isinstance(sys.modules.get(module), _StandIn):  # of a module that imports the one being run
        return True
    if module in sys.modules:
        return False
    package = module.partition(".")[0]
    if package in sys.modules:
        return sys.modules[package] is not None
    try:
        return importlib.util.find_spec(package) is not None
    except ImportError:  # a finder that refuses it: so will its import
        return False


def _later(module: str, name: str) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        return getattr(_imported(module), name)(*arguments, **named)

    return call


def _imported(name: str) -> ModuleType:
    """Import a module in the place of its stand-ins."""
    found = importlib.import_module(name)
    while isinstance(found, _StandIn):
        found.leave()
        found = importlib.import_module(name)
    return found


class _StandIn(ModuleType):
    """Stands for a module in another one that imported it; imports it when something of it is used.

    Attributes:
        has_left: it no longer stands in the place of the module.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.has_left = False
        self.__path__ = _PathOf(self)
        # For those who ask `importlib.util.find_spec` whether the module is installed.
        self.__spec__ = ModuleSpec(name, None, is_package=True)

    def __getattr__(self, attribute: str) -> Any:
        try:
            return getattr(_imported(self.__name__), attribute)
        except ImportError as error:
            if attribute.startswith("__"):  # `inspect` asks every module for its `__file__`
                raise AttributeError(str(error)) from error
            raise

    def __dir__(self) -> list[str]:
        return dir(_imported(self.__name__))

    def __reduce__(self) -> tuple[Any, ...]:
        return importlib.import_module, (self.__name__,)

    def show(self) -> None:
        """Be an attribute of the package, as what is imported is."""
        package, _, last = self.__name__.rpartition(".")
        parent = sys.modules.get(package)
        if parent is not None and not isinstance(parent, _StandIn) and last not in vars(parent):
            setattr(parent, last, self)

    def leave(self) -> bool:
        """Leave the place of the module; return whether this was there."""
        self.has_left = True
        package, _, last = self.__name__.rpartition(".")
        parent = sys.modules.get(package)
        if parent is not None and vars(parent).get(last) is self and not isinstance(parent, _StandIn):
            delattr(parent, last)
        is_here = sys.modules.get(self.__name__) is self
        if is_here:
            del sys.modules[self.__name__]
        return is_here


class _PathOf(list[str]):
    """The folders of the package that a stand-in stands for: iterated over to import a module of it."""

    def __init__(self, stand_in: _StandIn) -> None:
        super().__init__()
        self._stand_in = stand_in

    def __iter__(self) -> Iterator[str]:
        return iter(_imported(self._stand_in.__name__).__path__)
