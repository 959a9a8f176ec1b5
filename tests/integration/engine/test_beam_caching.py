"""What is cached of Beam's lookups is what Beam would find again."""

import functools
import gc
import pickle
import weakref

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def caching():
    return pytest.importorskip("slipway.pipeline.engine.tfx.beam_caching")


@pytest.fixture(scope="module")
def core(caching):
    from apache_beam.transforms import core

    return core


@pytest.fixture
def signature_of(caching, core):
    original = getattr(core.get_function_args_defaults, "original", core.get_function_args_defaults)
    kept = caching.cache_signatures(original)

    def call(function):
        first, again, fresh = kept(function), kept(function), original(function)
        assert first == again == fresh
        return again

    return call


class Thing:
    def method(self, element, window=3):
        return element, window

    def __call__(self, element, *, side=1):
        return element, side


def plain(element, *rest, factor=2):
    return element, rest, factor


def test_every_sort_of_function_keeps_its_signature(signature_of):
    for function in (
        plain,
        lambda x, y=1: (x, y),
        Thing().method,
        Thing.method,
        Thing(),
        Thing,
        len,
        str.upper,
    ):
        signature_of(function)
    assert signature_of(functools.partial(plain, 1))[0] == []


def test_method_counts_bound_and_unbound(signature_of):
    assert signature_of(Thing.method)[0] == ["self", "element", "window"]
    assert signature_of(Thing().method) == (["element", "window"], [3])


def test_caller_may_change_what_it_got(caching, core):
    kept = caching.cache_signatures(lambda _function: (["a"], [1]))
    kept(plain)[0].append("b")
    assert kept(plain) == (["a"], [1])


def test_function_is_forgotten_with_its_owner(caching):
    kept = caching.cache_signatures(lambda _function: ([], []))

    def short_lived():
        return None

    kept(short_lived)
    gone = weakref.ref(short_lived)
    del short_lived
    gc.collect()
    assert gone() is None


def test_views_share_values_and_secrets_stay_out_of_pickles(caching, monkeypatch):
    from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions, TypeOptions

    original = getattr(PipelineOptions.view_as, "original", PipelineOptions.view_as)
    monkeypatch.setattr(PipelineOptions, "view_as", caching.cache_views(original))
    options = PipelineOptions(["--impersonate_service_account=someone", "--project=mine"])
    view = options.view_as(TypeOptions)
    assert options.view_as(TypeOptions) is view
    view.pipeline_type_check = False
    assert options.view_as(TypeOptions).pipeline_type_check is False
    cloud = pickle.loads(pickle.dumps(options)).view_as(GoogleCloudOptions)  # noqa: S301 (our own bytes)
    assert cloud.project == "mine"
    assert cloud.impersonate_service_account is None
    other = PipelineOptions([])
    assert other.view_as(TypeOptions).pipeline_type_check is True


def test_lookups_are_cached_once_however_often_it_is_asked_for(caching, core, monkeypatch):
    monkeypatch.setattr(core, "get_function_args_defaults", core.get_function_args_defaults)
    from apache_beam.options.pipeline_options import PipelineOptions

    monkeypatch.setattr(PipelineOptions, "view_as", PipelineOptions.view_as)
    caching.cache_beam_lookups()
    first = core.get_function_args_defaults
    caching.cache_beam_lookups()
    assert core.get_function_args_defaults is first
