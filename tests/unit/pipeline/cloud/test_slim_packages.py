"""What the image leaves out of its packages, and what it keeps."""

import subprocess

import pytest

from slipway.pipeline.cloud.slim_packages import slim


@pytest.fixture
def packages(tmp_path):
    """A folder of packages as pip leaves them."""
    for name in (
        "tensorflow/include/tsl/a.h",
        "tensorflow/include/tsl/include/LICENSE.txt",
        "tensorflow/compiler/mlir/stablehlo/stablehlo.py",
        "tensorflow/compiler/mlir/stablehlo/stablehlo_extension.so",
        "tensorflow/python/tests/test_a.py",
        "tensorflow/python/include/kept.py",
        "apache_beam/testing/util.py",
        "scipy/tests/tests/test_a.py",
        "pip/__main__.py",
        "scipy/stats/_page_trend_test.py",
        "tfx/components/trainer/executor_test.py",
        "tfx/components/trainer/__pycache__/executor_test.cpython-311.pyc",
        "tfx/components/testdata/external/csv/data.csv",
        "vertexai/tuning.py",
        "google/cloud/aiplatform_v1/services/job_service/transports/rest_asyncio.py",
        "google/cloud/aiplatform_v1/services/job_service/transports/__pycache__/rest_asyncio.cpython-311.pyc",
        "google/cloud/aiplatform_v1/services/job_service/transports/rest.py",
        "tensorboard/webfiles.zip",
        "numpy/random/_generator.pyi",
        "numpy/_core/include/numpy/random/LICENSE.txt",
        "numpy/_core/include/numpy/arrayobject.h",
        "pyarrow/libarrow_flight.so.1801",
        "pyarrow/_flight.cpython-311-x86_64-linux-gnu.so",
        "pyarrow/libarrow_python.so",
        "tfx/examples/chicago_taxi_pipeline/data/simple/data.csv",
        "numpy/small.so",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    return tmp_path


def test_headers_and_tests_go_and_what_tasks_import_or_read_and_licences_stay(packages):
    slim(packages)
    assert {str(path.relative_to(packages)) for path in packages.rglob("*") if path.is_file()} == {
        "tensorflow/include/tsl/include/LICENSE.txt",
        "tensorflow/compiler/mlir/stablehlo/stablehlo.py",
        "tensorflow/python/include/kept.py",
        "google/cloud/aiplatform_v1/services/job_service/transports/rest.py",
        "numpy/_core/include/numpy/random/LICENSE.txt",
        "apache_beam/testing/util.py",
        "pip/__main__.py",
        "scipy/stats/_page_trend_test.py",
        "pyarrow/libarrow_python.so",
        "tfx/examples/chicago_taxi_pipeline/data/simple/data.csv",
        "numpy/small.so",
    }


def test_large_libraries_lose_their_symbols_once_unless_auditwheel_laid_them_out(packages, monkeypatch):
    library = packages / "tensorflow" / "libtensorflow_cc.so.2"
    library.write_bytes(bytes(2 << 20))
    (packages / "tensorflow" / "libtensorflow_cc.so").symlink_to(library)
    (packages / "numpy.libs").mkdir()
    (packages / "numpy.libs" / "libscipy_openblas64_.so").write_bytes(bytes(2 << 20))
    arrow = packages / "pyarrow" / "libarrow.so.1801"
    arrow.write_bytes(bytes(2 << 20))
    ran = []
    monkeypatch.setattr(subprocess, "run", lambda words, check: ran.append((words, check)))
    slim(packages)
    assert ran == [(["strip", "--strip-unneeded", str(arrow), str(library)], True)]
