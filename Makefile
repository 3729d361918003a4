# One way to do each thing. Everything runs from .venv in this folder; `make install` makes it.
# Needed beforehand: python3 (3.11 or later, with its venv module), git, make.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

# Another interpreter: make install PYTHON=python3.12
PYTHON ?= python3
UV_VERSION := 0.13.9
BIN := .venv/bin
STAMP := .venv/.installed

# uv must use the interpreter of .venv and never fetch one of its own.
export UV_PYTHON_DOWNLOADS := never
export VIRTUAL_ENV := $(CURDIR)/.venv

.PHONY: help install demo test nightly lint types format bench protos lock clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP) ## make or refresh .venv with everything development needs

demo: $(STAMP) ## run the whole system on this machine with real data
	@$(BIN)/tallyveil demo

test: $(STAMP) ## run the tests, save the nightly ones
	@$(BIN)/pytest -n auto --dist loadgroup -m "not nightly"

nightly: $(STAMP) ## run all the tests
	@$(BIN)/pytest -n auto --dist loadgroup

lint: $(STAMP) ## check style, formatting, the import rules and the .proto files
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/buf lint proto
	@$(BIN)/buf format --diff --exit-code proto

types: $(STAMP) ## check types with mypy and pyright, both strict
	@$(BIN)/mypy
	@$(BIN)/pyright --warnings

format: $(STAMP) ## format the code and apply the safe lint fixes
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .
	@$(BIN)/buf format -w proto

bench: $(STAMP) ## measure performance
	@$(BIN)/tallyveil bench

protos: $(STAMP) ## generate core/tallyveil/wire/v1 from proto/
	@$(BIN)/python proto/regenerate.py

# Universal: one lock for every platform and every supported Python. Index addresses stay out of it, so that it
# serves behind a mirror too. Run again with LOCK_FLAGS=--upgrade to take newer releases.
LOCK := $(BIN)/uv pip compile --quiet --universal --generate-hashes \
	--python-version 3.11 --custom-compile-command "make lock"
lock: | $(BIN)/uv ## pin the dependencies again in requirements/
	@$(LOCK) $(LOCK_FLAGS) --extra dev pyproject.toml --output-file requirements/dev.txt
	@$(LOCK) - --output-file requirements/uv.txt <<< "uv==$(UV_VERSION)"

clean: ## remove .venv and every cache
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# The interpreter is checked first, because venv's own message does not say what to install.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "error: $(PYTHON) is missing or older than 3.11; say which to use: make install PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "error: $(PYTHON) cannot make virtual environments; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv .venv

$(BIN)/uv: requirements/uv.txt | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@touch $@

# The lock holds the build back end too, hence no isolated build with unpinned tools.
$(STAMP): pyproject.toml requirements/dev.txt $(BIN)/uv
	@$(BIN)/uv pip sync --quiet --compile-bytecode --require-hashes requirements/dev.txt requirements/uv.txt
	@$(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q core client aggregator bench examples
	@touch $@
