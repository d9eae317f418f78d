# Two commands are enough: `make run` and `make test`. Each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUNS := $(VENV)/.runs
READY := $(VENV)/.ready
# nginx is measured as the distribution built it, so the gateway runs on the distribution's Python where that is
# new enough: one compiled with default flags, as pyenv does it, is a tenth slower.
DISTRO := $(shell /usr/bin/python3 -c 'import ensurepip, sys; print(sys.version_info >= (3, 11) and "distro" or "")' 2>/dev/null)
BENCH := $(if $(DISTRO),.bench/distro,$(VENV))
JUDGES := .judges/tools/.ready .judges/litellm/.ready tests/judges/node/node_modules/.package-lock.json

.DEFAULT_GOAL := help
.PHONY: help run test system check format docs bench scoreboard fuzz judges soak mutants clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

# What `make run` needs is there in seconds; the rest, with every SDK that tests talk to, is not.
$(RUNS): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[gateway,terminal]'
	@touch $@

$(READY): $(RUNS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

run: $(RUNS) ## start the gateway; scripted demo providers if no keys are set
	@$(BIN)/understudy serve $(ARGS)

test: $(READY) system ## run every test
	@$(BIN)/python -m pytest -n auto --dist worksteal

system: ## what tests need beyond Python, where it may be installed: a browser, axe-core, Redis
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && \
	  apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 || \
	  echo "note: no chromium here; the dashboard's browser tests will be skipped"
	@{ command -v redis-server || command -v valkey-server; } >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && \
	  apt-get install -y -qq --no-install-recommends redis-server; } >/dev/null 2>&1 || \
	  echo "note: no redis-server here; the tests of sharing between hosts will be skipped"
	@[ -d tests/ui/node_modules/axe-core ] || npm install --silent --no-fund --no-audit --no-package-lock \
	  --prefix tests/ui >/dev/null 2>&1 || echo "note: no axe-core here; accessibility is not checked"

check: $(READY) ## format, lint, types, layers
	$(BIN)/ruff format --check src tests bench
	$(BIN)/ruff check src tests bench
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_imports.py

format: $(READY) ## put the code into shape
	$(BIN)/ruff format src tests bench
	$(BIN)/ruff check --fix src tests bench

docs: $(READY) ## build the documentation into site/
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict -d site

.bench/distro/.runs: pyproject.toml constraints.txt
	/usr/bin/python3 -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[gateway,terminal]'
	@touch $@

bench: $(READY) $(BENCH)/.runs ## the speed figures
	$(BIN)/python bench/core.py
	$(BIN)/python bench/dialects.py
	$(BIN)/python bench/agents.py
	$(BIN)/python bench/transport.py
	$(BIN)/python bench/simulate.py
	$(BENCH)/bin/python bench/gateway.py
	$(BENCH)/bin/python bench/workers.py

scoreboard: $(READY) ## the fault catalogue through this gateway and others; fills docs/scoreboard.md
	$(BIN)/python bench/scoreboard.py --page

fuzz: $(READY) ## the property tests for much longer
	$(BIN)/python -m pytest --hypothesis-profile=long tests/core tests/dialects tests/transport tests/test_walk_laws.py

judges: $(READY) $(JUDGES) ## servers, clients and suites of others that need an environment of their own
	@$(BIN)/python -m pytest tests/judges --ignore tests/judges/test_reliability_table.py
	@$(BIN)/python -m pytest tests/clients/test_foreign_clients.py -k litellm

.judges/tools/.ready: tests/judges/requirements.txt
.judges/litellm/.ready: tests/clients/lite/requirements.txt
.judges/%/.ready:
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile --no-deps -r $<
	@touch $@

tests/judges/node/node_modules/.package-lock.json: tests/judges/node/package-lock.json
	npm ci --silent --no-fund --no-audit --ignore-scripts --prefix $(<D)
	@touch $@

soak: $(READY) ## ten minutes of load, faults, reloads and kills, judged afterwards; and many histories
	UNDERSTUDY_SEEDS=20000 $(BIN)/python -m pytest tests/chaos/test_histories.py
	@set -e; folder=$$(mktemp -d); for workers in 1 2; do echo "$$workers at work; lines go to $$folder/$$workers"; \
	  $(BIN)/python -m tests.chaos.soak $$folder/$$workers --seconds $(or $(SOAK),300) --workers $$workers; \
	  $(BIN)/python -m tests.chaos.checker $$folder/$$workers; done

mutants: $(READY) ## break each invariant on purpose; a test must go red for each
	$(BIN)/python -m tests.chaos.mutants

clean: ## remove what was set up
	rm -rf $(VENV) .bench .judges .pytest_cache .mypy_cache .ruff_cache .hypothesis
