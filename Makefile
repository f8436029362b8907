# Every word of this file is also what continuous integration uses. A fresh machine needs Python 3.11+, make and a package index.

PYTHON ?= python3
VENV := .venv
VENV_PEERS := .venv-peers
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
AUDIT ?= online  # of make release; offline: where the package index does not tell of known holes
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
export PYTHONDONTWRITEBYTECODE =  # tests start hundreds of processes; each would compile everything anew

# Where tests work: in memory where there is room for it, since they wait for thousands of writes to reach the disk.
ROOMY = $(shell [ "$$(df --output=avail --block-size=1G /dev/shm 2>/dev/null | tail -1)" -ge 4 ] 2>/dev/null && echo /dev/shm || echo /tmp)

.PHONY: help demo test check unit soak bench papers peers docs dist release clean
.DEFAULT_GOAL := help

help:  ## Say what can be made.
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## +' '{printf "make %-8s %s\n", $$1, $$2}'

demo: $(VENV)/.demo  ## Install, then tune a real training job on this machine: about a minute.
	@rm -rf examples/digits/digits.db*
	@PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/trimtuner run examples/digits/job.yaml

test: $(VENV)/.dev  ## Everything that must hold before a change lands: check and unit, side by side.
	@$(MAKE) --no-print-directory -j2 check unit

check: $(VENV)/.dev  ## Format, lint, types, and the arrows between rooms.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

unit: $(VENV)/.dev  ## The test suite, without its long forms.
	place=$$(mktemp -d $(ROOMY)/tt-XXXXXX) && chmod 755 "$$place" && trap 'rm -rf "$$place"' EXIT && \
	TMPDIR=$$place $(ONE_THREAD) $(BIN)/pytest -n 4 --dist loadgroup --no-loadscope-reorder -m "not slow"  # four on two cores: tests of engines wait

soak: $(VENV)/.dev  ## The long forms of the promises.
	$(ONE_THREAD) $(BIN)/pytest -n 2 --dist loadgroup -m slow --timeout 3600

bench: $(VENV)/.dev  ## Measure speed and search quality; prints what docs/performance.md reports.
	$(ONE_THREAD) $(BIN)/python benchmarks/speed.py
	$(ONE_THREAD) $(BIN)/python benchmarks/methods.py
	$(ONE_THREAD) $(BIN)/python benchmarks/quality.py

papers: $(VENV)/.dev  ## Regenerate the papers' tables and figures into docs/results: hours; ARGS="--seeds 3": minutes.
	$(ONE_THREAD) $(BIN)/python -m benchmarks.papers $(ARGS)

peers: $(VENV_PEERS)/.installed  ## Replay the tools one would pick instead, on all jobs, into docs/results: some two hours on two cores.
	$(ONE_THREAD) $(VENV_PEERS)/bin/python -m benchmarks.peers
	$(ONE_THREAD) $(VENV_PEERS)/bin/python -m benchmarks.continuous
	$(ONE_THREAD) $(VENV_PEERS)/bin/python -m benchmarks.machines_only

docs: $(VENV)/.docs  ## Build the documentation into site/, and check its links.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python tools/check_site.py site

dist: $(VENV)/.dev  ## Build the wheel and the sdist into dist/.
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

release: dist  ## Install what was built everywhere it should work, use it, and ask for known holes: ten minutes.
	$(BIN)/python tools/check_release.py --audit $(AUDIT) dist

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "trimtuner needs Python 3.11 or newer; say which with make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable ".[examples]"
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable ".[dev,examples]"
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python  # a tenth of what the tests take
	$(PIP) --editable ".[docs]"
	@touch $@

# A venv of their own: they are large, and want older versions of what the package uses.
$(VENV_PEERS)/.installed: benchmarks/peers/requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV_PEERS)
	$(VENV_PEERS)/bin/python -m pip install --quiet --disable-pip-version-check \
		--requirement benchmarks/peers/requirements.txt --editable .
	@touch $@

clean:  ## Remove what was installed and cached here.
	rm -rf $(VENV) $(VENV_PEERS) site dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
