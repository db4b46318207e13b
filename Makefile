# Everything a fresh machine needs: python3 (3.11 to 3.13) and make.
#   make demo   grade BM25 and the controls on the bundled sample
#   make test   lint, types, import rules, all tests
#   make kills  kill the command 200 times at random moments: is what it leaves whole?
#   make studies   every study of docs/studies.md at full size (about 20 minutes on two cores)
#   make dist-test   build wheel and sdist, try them in an empty environment
#   make docs   the documentation as a site, in site/index.html
#   make browser-test   the HTML page in Chromium (installs what is missing)
#   make lowest-test   the tests on the oldest versions that pyproject.toml allows (TESTS=... fewer)
#   make audit   known vulnerabilities of what is installed (asks a service on the internet)
# Another interpreter: make test PYTHON=python3.12

# the first interpreter of a version that fits
FITS := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
  if $$p -c '$(FITS)' >/dev/null 2>&1; then echo $$p; break; fi; done)
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help demo test check lint format types imports tests dist-test browser-test lowest-test \
  audit docs kills studies clean

help:
	@sed -n '2,11p' Makefile | cut -c 3-

$(VENV)/.created:
	@test -n '$(PYTHON)' || { echo 'Python 3.11, 3.12 or 3.13 is needed' >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV) || $(PYTHON) -m virtualenv --clear $(VENV) || \
	  { echo 'no venv module: install python3-venv, or virtualenv' >&2; exit 1; }
	$(PIP) install --upgrade pip
	@touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml
	$(PIP) install --editable .
	@touch $@

# beir declares torch, which its evaluation and its loader do not need
$(VENV)/.installed-test: $(VENV)/.created pyproject.toml
	$(PIP) install --editable '.[test]'
	$(PIP) install --no-deps 'beir>=2.2'
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/falsify-beir --controls

# the tests come last: their summary is the last thing on the screen
test: check tests

check: lint types imports

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.installed-test
	$(BIN)/mypy

imports: $(VENV)/.installed-test
	$(BIN)/lint-imports

tests: $(VENV)/.installed-test
	$(BIN)/python -m pytest

dist-test: $(VENV)/.created
	$(PIP) install 'build>=1.2'
	$(BIN)/python tests/dist_check.py

# a warning is an error: a page outside the navigation, a link to nowhere, a broken docstring
docs: $(VENV)/.created pyproject.toml
	$(PIP) install --editable '.[docs]'
	$(BIN)/python -m sphinx --quiet --fail-on-warning --fresh-env -c docs . site
	$(BIN)/python tests/site_check.py site
	@echo 'site/index.html'

browser-test: $(VENV)/.installed-test
	PYTHON=$(BIN)/python tests/browser/run.sh

# mteb-core and beir bring newer versions of what the base depends on, so they stay out; the tools
# are the newest that go with the oldest of the rest
LOWEST := $(VENV)-lowest
EXTRAS ?= ir-datasets lz4 mcp notebooks parquet report text
UV = VIRTUAL_ENV=$(LOWEST) $(BIN)/uv pip
TOOLS := pytest hypothesis jsonschema pyyaml import-linter falsify-eval==0.2.0 joblib statsmodels \
  requests tqdm

$(LOWEST)/.installed: $(VENV)/.created pyproject.toml
	$(PIP) install 'uv>=0.5'
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(LOWEST)
	$(UV) compile --quiet --resolution lowest-direct --no-header --no-annotate pyproject.toml \
	  $(EXTRAS:%=--extra %) \
	  --output-file $(LOWEST)/lowest.txt
	$(UV) install --quiet --requirement $(LOWEST)/lowest.txt
	$(UV) install --quiet --constraint $(LOWEST)/lowest.txt $(TOOLS)
	$(UV) install --quiet --no-deps 'beir>=2.2'
	@touch $@

# matplotlib 3.8 calls a newer pyparsing by old names
lowest-test: $(LOWEST)/.installed
	$(LOWEST)/bin/python -m pytest -p no:cacheprovider \
	  -W ignore::pyparsing.warnings.PyparsingDeprecationWarning $(TESTS)

# --strict: a package that the service does not know is an error, not a line in a table
AUDIT_SERVICE ?= pypi
audit: $(VENV)/.installed-test
	$(PIP) install 'pip-audit>=2.7'
	$(BIN)/python -m pip freeze --exclude-editable > $(VENV)/audit.txt
	$(BIN)/pip-audit --strict --no-deps --disable-pip --vulnerability-service $(AUDIT_SERVICE) \
	  --requirement $(VENV)/audit.txt

kills: $(VENV)/.installed-test
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m tests.kills 200

# the studies count on one thread per process
studies: $(VENV)/.installed-test
	OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m tests.studies --full

clean:
	rm -rf $(VENV) $(LOWEST) build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
