# Every target works on a fresh clone: `setup` comes first by itself and does nothing when nothing changed.

VENV := .venv
PYTHON := $(VENV)/bin/python
READY := $(VENV)/.ready
PACKAGES = $$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
IMAGE := slipway
BUILDER := docker
JOBS := 2
UNTRACED = cc -O2 -shared -fPIC -I$$($(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))') \
	-o $(PACKAGES)/_uncounted_packages.so tests/support/uncounted_packages.c
DURATIONS = $(if $(SLOWEST),--durations=$(SLOWEST))
# What the Dockerfile's base is: one Python on one platform.
IN_IMAGE := --python-version 3.11 --python-platform x86_64-manylinux_2_34 --generate-hashes --no-emit-index-url \
	--no-annotate --no-header --quiet
# What only notebooks ask of IPython (TFMA imports the rest of it, and without that has no metrics), a C compiler of
# TensorFlow's, a server that only TensorBoard's page asks, and clients of services that Beam can read but no part of
# ours does: no task imports them.
NOT_IN_IMAGE := $(addprefix --no-emit-package ,jedi jupyterlab-widgets libclang matplotlib-inline parso pexpect \
	ptyprocess widgetsnbextension cloud-sql-python-connector tensorboard-data-server google-genai \
	$(addprefix google-cloud-,bigtable build datastore dlp kms language monitoring pubsub recommendations-ai \
	secret-manager spanner sql videointelligence vision))

.PHONY: run check test test-external test-all floors fuzz mutants setup jax tpu-compiler airflow mlflow docs lint lock schema image image-base image-twice sbom image-check flink spark prism azurite otel-collector marquez clean help

run: setup ## The taxi workload, from raw trips to a pushed model
	@$(PYTHON) local_runner.py run

check: lint ## Before a commit, in under a minute: lint, types, layers, and the unit tests that the change touches
	@PYTHONPATH=tests/support $(PYTHON) -m touched | xargs -r $(PYTHON) -m pytest -q -n $(JOBS)

# Three on two cores: a quarter of the time a test waits, for what it started or on purpose. A run of TFX holds some
# 2 GB, and takes more than one core in parts only.
test: JOBS := 3
# A thread each of OpenMP and of TensorFlow's operations: threads of three workers on two cores wait for one another,
# OpenMP's in a busy loop. A third less time; test-external has the threads that users have.
test: export OMP_NUM_THREADS := 1
test: export TF_NUM_INTRAOP_THREADS := 1
test: setup ## The tests that need nothing but .venv, three files side by side; make test JOBS=0 SLOWEST=20
	@$(if $(COVERAGE),rm -rf .cache/coverage && cp tests/support/uncounted_packages.py $(PACKAGES) && { $(UNTRACED) || \
		echo "uncounted_packages.c was not compiled: coverage traces packages too and takes much longer" >&2; })
	@$(PYTHON) -m $(if $(COVERAGE),coverage run -m) pytest -n $(JOBS) $(DURATIONS) -m "not external"

# One process is told the folders, so that modules which no test imports count as not run. Without warnings: of
# files that a killed process left torn.
floors: ## After make test COVERAGE=1: which share of each package it has run, and whether that is enough
	@$(PYTHON) -W ignore -m coverage run --source=pipeline,components,schemas -m slipway.pipeline.exit_codes
	@$(PYTHON) -W ignore -m coverage combine --quiet
	@$(PYTHON) -W ignore -m coverage json --quiet -o .cache/coverage/report.json
	@PYTHONPATH=tests/support $(PYTHON) -m floors .cache/coverage/report.json

# Without tests/unit: each worker would read its thousands of tests for none (tests/conftest.py refuses one).
test-external: JOBS := 3
test-external: setup ## The others: other workloads end to end, JAX, the TPU compiler, Airflow, MLflow, a collector, Beam's engines, databases, browser, shells, TFX's own components, random kills
	@$(PYTHON) -m pytest -n $(JOBS) $(DURATIONS) -m external tests/e2e tests/fuzz tests/integration

test-all: setup ## All tests
	@$(PYTHON) -m pytest -n $(JOBS)

fuzz: setup ## Damaged files, workloads and requests for all readers; make fuzz SECONDS=600 TARGETS="csv parquet"
	@PYTHONPATH=.:tests/fuzz $(PYTHON) -m fuzzing --seconds $(or $(SECONDS),60) $(TARGETS)

MUTMUT := PYTHONPATH=$(CURDIR)/.cache/mutmut CI=1 nice $(PYTHON) -m mutmut

mutants: setup ## Which changes of the rules that decide no unit test notices; make mutants ONLY='slipway.pipeline.plan.decide*'
	@$(VENV)/bin/uv pip install --quiet --target .cache/mutmut --constraint requirements.lock mutmut==3.8.1
	@$(MUTMUT) run --max-children $(JOBS) $(ONLY) && $(MUTMUT) results | sed '/: not checked/d'

setup: $(READY) ## A virtual environment in .venv with the locked packages

$(READY): requirements.lock setup.sh
	@bash setup.sh $(VENV)

# Apart from .venv, because TensorFlow imports JAX wherever it finds it, and Keras has one backend a process.
jax: $(VENV)-jax/.ready ## A second environment, .venv-jax, to train with Keras on JAX

$(VENV)-jax/.ready: requirements-jax.lock setup.sh
	@bash setup.sh $(VENV)-jax requirements-jax.lock

tpu-compiler: $(VENV)-tpu/.ready ## A third one, .venv-tpu, whose libtpu compiles for TPUs where there is none (2.6 GB)

# It has all of .venv-jax, whose files and their bytecode it shares: one third of the time, and 1 GB less.
$(VENV)-tpu/.ready: $(VENV)-jax/.ready requirements-jax.lock requirements-tpu.lock setup.sh
	@rm -rf $(VENV)-tpu && mkdir $(VENV)-tpu && cp -al $(VENV)-jax/lib $(VENV)-tpu/lib
	@bash setup.sh $(VENV)-tpu requirements-jax.lock requirements-tpu.lock

# Apart from .venv, because Airflow and TFX want different versions of the same packages.
airflow: $(VENV)-airflow/.ready ## Airflow in an environment of its own, .venv-airflow, to try DAGs with

$(VENV)-airflow/.ready: requirements-airflow.lock setup.sh
	@bash setup.sh $(VENV)-airflow requirements-airflow.lock

# Apart from .venv, because on Python 3.11 MLflow's packages and TFX' exclude each other.
mlflow: $(VENV)-mlflow/.ready ## An MLflow server in an environment of its own, .venv-mlflow, to track runs with

$(VENV)-mlflow/.ready: requirements-mlflow.lock setup.sh
	@bash setup.sh $(VENV)-mlflow requirements-mlflow.lock

# Apart from .venv, because a site needs a dozen small packages and no TensorFlow.
docs: $(VENV)-docs/.ready ## The documentation as a site in site/, with its links and anchors checked
	@rm -rf site && $(VENV)-docs/bin/zensical build --strict --clean

$(VENV)-docs/.ready: requirements-docs.lock setup.sh
	@bash setup.sh $(VENV)-docs requirements-docs.lock

lint: setup ## Format, lint, types, layers, the Dockerfile
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports
	@$(VENV)/bin/hadolint Dockerfile

# What `slipway init` gives to a project: of the same versions, which uv takes from the file that it writes over.
OF_PROJECTS := pipeline/start/templates/project/requirements.lock

lock: setup ## Resolves the dependencies anew into requirements.lock
	@$(VENV)/bin/uv pip compile pyproject.toml --extra tfx --group dev --universal --python-version 3.11 --upgrade \
		--generate-hashes --no-emit-index-url --no-annotate --no-header --quiet -o requirements.lock
	@cp requirements.lock $(OF_PROJECTS)
	@echo 'pytest' | $(VENV)/bin/uv pip compile pyproject.toml - --extra tfx --extra cloud --extra stores --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-annotate --no-header --quiet -o $(OF_PROJECTS)
	@echo 'jax[tpu]==0.10.2' | $(VENV)/bin/uv pip compile - --constraints requirements.lock --universal \
		--python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --quiet \
		-o requirements-tpu.lock
	@printf 'pip\nuv\n' | $(VENV)/bin/uv pip compile pyproject.toml - --extra tfx --extra cloud --extra stores --constraints requirements.lock $(IN_IMAGE) \
		$(NOT_IN_IMAGE) -o requirements-image.lock
	@printf 'tensorflow-tpu==2.20.0\nlibtpu==0.0.18\nkeras\nnumpy\nh5py\nuv\n' | $(VENV)/bin/uv pip compile - $(IN_IMAGE) \
		-o requirements-tpu-tensorflow.lock
	@printf 'tensorflow\nkeras\nnumpy\njax==0.10.2\n' | $(VENV)/bin/uv pip compile - --universal \
		--python-version 3.11 --constraints requirements.lock --upgrade \
		--generate-hashes --no-emit-index-url --no-annotate --no-header --quiet -o requirements-jax.lock
	@printf 'apache-airflow-core\napache-airflow-providers-standard\n' | $(VENV)/bin/uv pip compile - --universal \
		--python-version 3.11 --upgrade --generate-hashes --no-emit-index-url --no-annotate --no-header \
		--quiet -o requirements-airflow.lock
	@echo 'mlflow' | $(VENV)/bin/uv pip compile - --universal --python-version 3.11 --upgrade \
		--generate-hashes --no-emit-index-url --no-annotate --no-header --quiet -o requirements-mlflow.lock
	@echo 'zensical' | $(VENV)/bin/uv pip compile - --universal --python-version 3.11 --upgrade \
		--generate-hashes --no-emit-index-url --no-annotate --no-header --quiet -o requirements-docs.lock

schema: setup ## Writes schemas/workload.schema.json from pipeline/config/
	@$(PYTHON) -m slipway.pipeline.config.json_schema

# Job servers of Beam with a whole engine inside, as one folder of jars each; BEAM_JAVA is the version tested.
BEAM_JAVA := 2.62.0
flink spark: ## Beam's job server with a Flink (a Spark) inside, from Maven into .engines/; needs a JDK and Maven
	@command -v mvn >/dev/null || { echo "make $@ needs Maven: apt install maven" >&2; exit 1; }
	@command -v javac >/dev/null || { echo "make $@ needs a JDK: apt install default-jdk-headless" >&2; exit 1; }
	@mvn --quiet --batch-mode -f engines/$@ -Dbeam.version=$(BEAM_JAVA) dependency:copy-dependencies jar:jar
	@cd engines/$@/target && javac --release 11 -cp 'jars/*' -d classes ../../LoopbackServers.java && \
		jar --update --file job-server.jar -C classes .
	@rm -rf .engines/$@ && mkdir -p .engines && mv engines/$@/target .engines/$@
	@echo "ready: beam.runner: $@, with SLIPWAY_OPEN_PORTS=1, see docs/scale.md ($$(du -sh .engines/$@ | cut -f1) in .engines/$@)"

prism: setup ## Beam's Prism of the locked version, built by Go into .engines/
	@command -v go >/dev/null || { echo "make prism needs Go: apt install golang" >&2; exit 1; }
	@GOBIN=$(CURDIR)/.engines go install github.com/apache/beam/sdks/v2/go/cmd/prism@v$$($(PYTHON) -c \
		'from importlib.metadata import version; print(version("apache-beam"))')
	@echo "ready: beam.runner: prism, with SLIPWAY_OPEN_PORTS=1, see docs/scale.md"

# Without the telemetry of later versions, whose 240 MB take 27 s of CPU more to unpack.
azurite: ## Azurite, Microsoft's emulator of Azure Storage, for the tests of az://, from npm into .engines/
	@command -v npm >/dev/null || { echo "make $@ needs npm: apt install npm" >&2; exit 1; }
	@npm install --silent --no-fund --no-audit --prefix .engines/$@ azurite@3.33.0
	@echo "ready: .engines/$@/node_modules/.bin/azurite-blob"

# Without optimizations, which take a third of the time to compile.
otel-collector: ## OpenTelemetry's collector, to try traces with, built by Go into .engines/
	@command -v go >/dev/null || { echo "make $@ needs Go: apt install golang" >&2; exit 1; }
	@go build -C tests/support/otel_collector -buildvcs=false -gcflags='all=-N -l' -ldflags='-s -w' -o $(CURDIR)/.engines/$@ .
	@echo "ready: .engines/$@ --config FILE, see docs/tracking.md"

# No package registry has it. Only the sources are checked out, of the server and of the client that it uses.
MARQUEZ := https://github.com/MarquezProject/marquez
MARQUEZ_TAG := 0.51.1
marquez: ## Marquez, to try OpenLineage events with, compiled by Maven into .engines/; needs GitHub, Java 17 and Maven
	@command -v mvn >/dev/null || { echo "make $@ needs Maven: apt install maven" >&2; exit 1; }
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && rm -rf engines/$@/target && mkdir -p engines/$@/target/sources && \
		git clone --quiet --depth 1 --no-checkout --branch $(MARQUEZ_TAG) $(MARQUEZ) "$$folder" && \
		git -C "$$folder" checkout --quiet HEAD -- api/src/main clients/java/src/main && \
		cp -r "$$folder"/clients/java/src/main/. "$$folder"/api/src/main/. engines/$@/target/sources
	@mvn --quiet --batch-mode -f engines/$@ dependency:copy-dependencies compile jar:jar
	@rm -rf .engines/$@ && mkdir -p .engines && mv engines/$@/target .engines/$@ && rm -rf .engines/$@/sources .engines/$@/classes
	@echo "ready: java -jar .engines/$@/marquez.jar server FILE, see docs/tracking.md"

image: ## The container image for cloud runs; make image IMAGE=NAME:TAG TARGET=training-tpu
	@$(BUILDER) build $(BUILD_OPTIONS) --tag $(IMAGE) $(if $(TARGET),--target $(TARGET)) $(if $(BASE),--build-arg BASE=$(BASE)) \
		--build-arg REVISION=$$(git describe --always --dirty --abbrev=40 --exclude '*') .

# pip and uv of such a base trust what Debian trusts. The documentation and the languages of its programs stay outside.
image-base: ## A base of this Debian's own packages, where no registry of images is reached: make image-base BASE=localhost/base
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && . /etc/os-release && \
		mmdebstrap --quiet --variant=minbase --include=python3,python3-venv,ca-certificates \
		$(addprefix --dpkgopt=path-exclude=/usr/share/,doc/* locale/* man/*) \
		"$$VERSION_CODENAME" "$$folder/base.tar" $$(ls /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null) && \
		printf 'FROM scratch\nADD base.tar /\nENV %s %s\n' PATH=/usr/local/bin:/usr/bin:/bin \
		'SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt PIP_CERT=/etc/ssl/certs/ca-certificates.crt' >"$$folder/Dockerfile" && \
		buildah build --isolation=chroot --tag $(or $(BASE),localhost/base) "$$folder"

# From nothing: what a builder has kept would be equal to itself.
image-twice: ## Builds the image twice with Buildah and compares the digests; make image-twice BASE=localhost/base
	@for each in first second; do $(MAKE) --no-print-directory image BUILDER=buildah IMAGE=$(IMAGE):$$each \
		TARGET=$(or $(TARGET),pipeline) BUILD_OPTIONS='$(BUILD_OPTIONS) --no-cache --timestamp 0' || exit 1; done
	@for each in first second; do echo "$$(buildah inspect --type image --format '{{.FromImageDigest}}' $(IMAGE):$$each)"; done | \
		uniq -c | awk '{ print } $$1 == 2 && $$2 { same = 1 } END { exit !same }'

sbom: setup ## The packages of the image with their hashes, as CycloneDX: sbom.json
	@$(VENV)/bin/uv tool run --quiet --from cyclonedx-bom==7.5.0 cyclonedx-py requirements --output-reproducible \
		--of JSON -o sbom.json requirements-image.lock

image-check: setup ## The steps of the image's build in a clean folder, where there is no Docker
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
		$(PYTHON) -m slipway.pipeline.cloud.image_contents "$$folder/slipway" && cd "$$folder/slipway" && \
		bash setup.sh "$$folder/venv" requirements-image.lock && \
		"$$folder/venv/bin/python" -m compileall -q pipeline components schemas slipway workloads && \
		TF_USE_LEGACY_KERAS=0 "$$folder/venv/bin/python" -c 'import slipway.pipeline.cloud.container.task, slipway.pipeline.cloud.compile' && \
		"$$folder/venv/bin/python" -c 'import tensorflow_model_analysis as tfma; tfma.load_metrics' && \
		"$$folder/venv/bin/python" cloud_runner.py --help >/dev/null && \
		echo "the image's steps work here; its packages take $$(du -sh "$$folder/venv" | cut -f1)"

clean: ## Removes the virtual environment and the tools' caches; keeps output/
	@rm -rf $(VENV) site .cache .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis mutants
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## This list
	@grep -hE '^[a-z -]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'
