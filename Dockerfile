# The image that the tasks of a cloud run are executed in: `make image`, or
#   docker build --tag NAME:TAG .
#   docker build --tag NAME:TAG-tpu --target training-tpu .
#   docker build --tag NAME:TAG-beam --target beam-worker .
#   docker build --tag NAME:TAG-tpu-tensorflow --target training-tpu-tensorflow .
# Debian 13 (glibc 2.41) with the Python that the tests run on. .dockerignore says what is copied.
# A tag moves: a release names the base by its digest (.github/workflows/release.yml), and the image's label says which.
ARG BASE=python:3.11-slim-trixie
# Beam's own launcher, of the version that requirements.lock holds.
ARG BEAM=apache/beam_python3.11_sdk:2.77.0

# binutils has strip; its version does not show in what is left of the packages.
FROM ${BASE} AS tools
# hadolint ignore=DL3008
RUN apt-get update && apt-get install --yes --no-install-recommends binutils

FROM ${BASE} AS pipeline
WORKDIR /opt/slipway
COPY requirements-image.lock setup.sh ./
COPY pipeline/cloud/slim_packages.py pipeline/cloud/
# The same script and the same hashes as on a desk, without what develops and tests; it compiles to bytecode, so
# that tasks start quickly. By hash, not by time: the same packages then are the same bytes. All in one step, where
# they belong: what is removed again is in no layer, and 2.3 GB are not copied from stage to stage. The locks that uv
# leaves have random names.
RUN --mount=type=bind,from=tools,source=/usr,target=/opt/tools --mount=type=cache,target=/root/.cache \
    BYTECODE=unchecked_hash bash setup.sh /opt/venv requirements-image.lock && \
    PATH="$PATH:/opt/tools/bin" LD_LIBRARY_PATH=/opt/tools/lib/x86_64-linux-gnu \
        python3 pipeline/cloud/slim_packages.py /opt/venv && \
    rm -rf /opt/venv/bin/uv /tmp/uv-*
# Compiled bytecode is in the image, and nobody may write beside it. Its user is one line, not useradd's work, which
# notes the day.
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONPATH=/opt/slipway \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp \
    LANG=C.UTF-8 \
    TF_USE_LEGACY_KERAS=0 \
    KERAS_BACKEND=tensorflow \
    TF_CPP_MIN_LOG_LEVEL=1
COPY . ./
RUN PYTHONDONTWRITEBYTECODE='' python -m compileall -q --invalidation-mode checked-hash \
        pipeline components schemas slipway workloads && \
    echo 'slipway:x:10001:10001::/tmp:/usr/sbin/nologin' >>/etc/passwd
USER 10001
ARG BASE
ARG REVISION=""
LABEL org.opencontainers.image.title="Slipway" \
    org.opencontainers.image.base.name="${BASE}" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.revision="${REVISION}"
CMD ["python", "cloud_runner.py", "--help"]

# Training on TPUs: JAX and libtpu beside the rest. libtpu is under its vendor's licence. With a date in the
# environment pip compiles by hash too.
FROM pipeline AS training-tpu
USER 0
RUN SOURCE_DATE_EPOCH=0 python -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps --require-hashes \
    --requirement requirements-tpu.lock
USER 10001

# The same with TensorFlow, up to v5e: a build of its own, beside which TFX cannot be. It only trains.
FROM ${BASE} AS training-tpu-tensorflow
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONPATH=/opt/slipway \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp \
    LANG=C.UTF-8 \
    TF_USE_LEGACY_KERAS=0 \
    KERAS_BACKEND=tensorflow \
    TF_CPP_MIN_LOG_LEVEL=1
WORKDIR /opt/slipway
COPY requirements-tpu-tensorflow.lock setup.sh ./
RUN BYTECODE=unchecked_hash bash setup.sh /opt/venv requirements-tpu-tensorflow.lock && rm -rf ~/.cache /tmp/uv-*
COPY . ./
RUN PYTHONDONTWRITEBYTECODE='' python -m compileall -q --invalidation-mode checked-hash \
        pipeline components schemas slipway workloads && \
    echo 'slipway:x:10001:10001::/tmp:/usr/sbin/nologin' >>/etc/passwd
USER 10001
CMD ["python", "-m", "slipway.components.trainer.remote.worker"]

# Workers of Beam outside the tasks (Dataflow, Flink, Spark): Beam's own launcher, which starts our packages.
FROM ${BEAM} AS beam

FROM pipeline AS beam-worker
ENV RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1
COPY --from=beam /opt/apache/beam /opt/apache/beam
# The launcher writes the job's options into the folder in which it starts, and on Dataflow into folders of root's
# (docs/cloud.md); elsewhere it runs as any user.
WORKDIR /tmp
# hadolint ignore=DL3002
USER 0
ENTRYPOINT ["/opt/apache/beam/boot"]

# What `docker build` makes when no target is named.
FROM pipeline
