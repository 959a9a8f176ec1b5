# Every target works on a fresh clone: `setup` comes first by itself and does nothing when nothing changed.

VENV := .venv
PYTHON := $(VENV)/bin/python
READY := $(VENV)/.ready
IMAGE := slipway

.PHONY: run test setup jax lint lock schema image clean help

run: setup ## The taxi workload, from raw trips to a pushed model
	@$(PYTHON) local_runner.py run

test: setup ## All tests
	@$(PYTHON) -m pytest

setup: $(READY) ## A virtual environment in .venv with the locked packages

$(READY): requirements.lock setup.sh
	@bash setup.sh $(VENV)

# Apart from .venv, because TensorFlow imports JAX wherever it finds it, and Keras has one backend a process.
jax: $(VENV)-jax/.ready ## A second environment, .venv-jax, to train with Keras on JAX

$(VENV)-jax/.ready: requirements-jax.lock setup.sh
	@bash setup.sh $(VENV)-jax requirements-jax.lock

lint: setup ## Format, lint, types, layers
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

lock: setup ## Resolves the dependencies anew into requirements.lock
	@$(VENV)/bin/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --upgrade \
		--generate-hashes --no-emit-index-url --no-annotate --no-header --quiet -o requirements.lock
	@echo 'jax[tpu]==0.10.2' | $(VENV)/bin/uv pip compile - --constraints requirements.lock --universal \
		--python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header --quiet \
		-o requirements-tpu.lock
	@printf 'tensorflow\nkeras\nnumpy\njax==0.10.2\n' | $(VENV)/bin/uv pip compile - --universal \
		--python-version 3.11 --constraints requirements.lock --upgrade \
		--generate-hashes --no-emit-index-url --no-annotate --no-header --quiet -o requirements-jax.lock

schema: setup ## Writes schemas/workload.schema.json from pipeline/config/
	@$(PYTHON) -m pipeline.config.json_schema

image: ## The container image for cloud runs; make image IMAGE=NAME:TAG TARGET=training-tpu
	@docker build --tag $(IMAGE) $(if $(TARGET),--target $(TARGET)) .

clean: ## Removes the virtual environment and the tools' caches; keeps output/
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## This list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'
