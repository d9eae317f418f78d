# Two commands are enough: `make run` and `make test`. Each sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help run test system check format docs bench fuzz clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "error: Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

run: $(READY) ## start the gateway; scripted demo providers if no keys are set
	@$(BIN)/understudy serve $(ARGS)

test: $(READY) system ## run every test
	@$(BIN)/python -m pytest

system: ## what tests need beyond Python, where it may be installed: a browser, axe-core
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get update -qq && \
	  apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 || \
	  echo "note: no chromium here; the dashboard's browser tests will be skipped"
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

bench: $(READY) ## the speed figures
	$(BIN)/python bench/core.py
	$(BIN)/python bench/dialects.py
	$(BIN)/python bench/agents.py
	$(BIN)/python bench/transport.py

fuzz: $(READY) ## the property tests for much longer
	$(BIN)/python -m pytest --hypothesis-profile=long tests/core tests/dialects tests/transport tests/test_walk_laws.py

clean: ## remove what was set up
	rm -rf $(VENV) .bench .pytest_cache .mypy_cache .ruff_cache .hypothesis
