# `make demo` and `make test` need Python 3.11 or newer (with its venv module) and make, and do all set-up
# themselves. Everything they install goes into .venv in this folder.

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup demo test lint lock bench bench-report soak faults promises architecture compose-init \
	e2e-compose chaos clean moved

STAMP := .venv/.installed
PY := .venv/bin/python

# the first Python that will do, unless PYTHON=... names one; if none will, preflight says why
ifndef PYTHON
PYTHON := $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$python" scripts/preflight.py >/dev/null 2>&1 && echo "$$python" && exit; done; echo python3)
endif

# settings of the machine that would change what is installed or tested
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONWARNINGS PIP_TARGET PIP_PREFIX MAKEFLAGS
export PYTHONNOUSERSITE := 1
export PIP_USER := 0
export PIP_NO_INPUT := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# of `make lock`; requirements.lock is the whole, the others are parts of it (scripts/check_lock.py)
COMPILE := pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-header --no-emit-index-url --no-annotate

help:
	@echo "make demo                 set up, index docs/ and search it by words and by meaning"
	@echo "make test                 set up and run every check"
	@echo "make lint                 the quick checks: format, lint, types, import contracts"
	@echo "make bench CORPUS=FOLDER  measure against the floors"
	@echo "make lock                 pin the dependencies of pyproject.toml again"
	@echo "make compose-init         write what docker-compose.yml needs; CORPUS=FOLDER answers its question"
	@echo "make e2e-compose          bring the services up under podman and kill each of them once (root, Debian)"
	@echo "make faults               the deep form of tests/faults: hours; PART=test_store_faults.py for one file of it"
	@echo "make soak MINUTES=60      a service under churn, searchers and outages; memory, log and latency over time"
	@echo "make bench-report         every figure of docs/performance.md; CORPORA=FOLDER holds the corpora"
	@echo "make promises             write docs/promises.md again from the last figures"
	@echo "make architecture         write docs/architecture.md again from the imports of the code"
	@echo "make chaos ROUNDS=20      kill every part of a service so many times under load, and compare what is stored"
	@echo "make clean                remove .venv, caches and build results"

setup: $(STAMP)

# an environment knows its own path: a folder that was moved or copied is set up again
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(shell pwd -P))
$(STAMP): moved
endif

$(STAMP): requirements.lock pyproject.toml
	@command -v "$(PYTHON)" >/dev/null || { echo "set-up: there is no $(PYTHON) here: install Python 3.11 or newer," \
		"or name one with PYTHON=..." >&2; exit 1; }
	@"$(PYTHON)" scripts/preflight.py
	@here="$$(pwd -P)"; \
	if [ "$$(cat $(STAMP) 2>/dev/null || echo "$$here")" != "$$here" ] \
		|| ! { $(PY) scripts/preflight.py && $(PY) -m pip --version; } >/dev/null 2>&1; \
	then echo "creating .venv with $$("$(PYTHON)" --version)" && "$(PYTHON)" -m venv --clear .venv; fi
	@echo "installing into .venv (a minute or two the first time)"
	@$(PY) -m pip install --quiet --require-hashes -r requirements.lock
	@$(PY) -m pip install --quiet --no-deps --no-build-isolation -e .
	@pwd -P > $(STAMP)

demo: setup
	@sh scripts/demo.sh

lint: setup
	$(PY) scripts/check_lock.py
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(PY) -m mypy scripts
	.venv/bin/lint-imports

# pytest stands last: its closing line closes the output
test: lint
	$(PY) scripts/wheel_check.py
	$(PY) -m pytest -n auto --dist loadfile --cov --cov-report=term:skip-covered

bench: setup
	@test -n "$(CORPUS)" || { echo "name a folder of Markdown: make bench CORPUS=FOLDER" >&2; exit 2; }
	$(PY) -m bench.run "$(CORPUS)"

lock:
	@"$(PYTHON)" scripts/preflight.py
	@"$(PYTHON)" -m venv --clear build/lock
	@build/lock/bin/python -m pip install --quiet uv
	build/lock/bin/uv $(COMPILE) --all-extras pyproject.toml -o requirements.lock
	build/lock/bin/uv $(COMPILE) --extra local --constraints requirements.lock pyproject.toml -o requirements-runtime.lock
	"$(PYTHON)" -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
		| build/lock/bin/uv $(COMPILE) --constraints requirements.lock - -o requirements-build.lock
	@rm -rf build/lock
	@"$(PYTHON)" scripts/check_lock.py

# needs no .venv; CORPUS=... reaches the script as a variable, however the folder is called
compose-init:
	@"$(PYTHON)" scripts/compose_init.py

e2e-compose: setup
	$(PY) scripts/e2e_compose.py $(if $(STORAGE),--storage "$(STORAGE)")

ROUNDS ?= 20
chaos: setup
	CHAOS_ROUNDS=$(ROUNDS) $(PY) -m pytest -p no:cacheprovider tests/faults/test_service_chaos.py

# the figures of a whole run are what docs/promises.md is written from
FIGURES ?= bench/results/proofs
faults: setup
	KNOWLEDGE_TEST_DEPTH=nightly KNOWLEDGE_TEST_FIGURES="$(FIGURES)" \
		$(PY) -m pytest -p no:cacheprovider --timeout=21600 tests/faults/$(PART)

MINUTES ?= 60
soak: setup
	$(PY) -m bench.soak --minutes $(MINUTES)

bench-report: setup
	$(PY) -m bench.report $(if $(CORPORA),--corpora "$(CORPORA)")

promises: setup
	$(PY) scripts/promises.py

architecture: setup
	$(PY) scripts/architecture.py

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
