# make demo     a run from slash command to end, in a Slack-like page in the browser (make demo HEADLESS=1 plays it by itself)
# make check    lint, types, import contracts, fast tests
# make test     everything, on real parts
# make lock     write requirements.lock anew from pyproject.toml
.DEFAULT_GOAL := help
.PHONY: help demo check test system fast lint types contracts lock clean

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
HEADLESS ?=
PORT   ?= 3000

help:
	@sed -n 's/^# //p' Makefile

# The stamp names what was installed; pip checks every file against the hashes of the lock.
$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "flower needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Say which: make PYTHON=python3.12 …")'
	@echo "Installing into $(VENV) (the agent program alone unpacks to 400 MB; once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

# The Slack emulator and the judges of Slack payloads come from npm, by name, as the lock says.
demo/node_modules/.installed: demo/package.json demo/package-lock.json
	@command -v npm >/dev/null || { echo "npm is missing: install Node.js (apt-get install npm, or your system's package) and run this again"; exit 1; }
	@echo "Installing the Slack emulator into demo/node_modules"
	@cd demo && npm ci --silent --no-fund --no-audit
	@touch $@

demo: $(VENV)/.installed demo/node_modules/.installed
	@$(BIN)/python -m demo --port $(PORT) $(if $(HEADLESS),--headless)

lint: $(VENV)/.installed
	@$(BIN)/ruff check flower bridge bots demo examples bench tests
	@$(BIN)/ruff format --check flower bridge bots demo examples bench tests

types: $(VENV)/.installed
	@$(BIN)/mypy

contracts: $(VENV)/.installed
	@$(BIN)/lint-imports

fast: $(VENV)/.installed
	@$(BIN)/python -m pytest -q -m "not real"

check: lint types contracts fast

system:
	@tests/system/install.sh

test: system demo/node_modules/.installed check
	@mkdir -p .make; $(BIN)/python -m pytest -q -m real tests/stories/test_first_light.py >.make/first-light.log 2>&1 & story=$$!; \
		$(BIN)/python -m pytest -q -m real --ignore=tests/stories/test_first_light.py; rest=$$?; \
		wait $$story; told=$$?; cat .make/first-light.log; exit $$((rest | told))

lock: $(VENV)/.installed
	@$(BIN)/python -m pip install --quiet uv
	@$(BIN)/uv pip compile --quiet pyproject.toml --extra dev --generate-hashes --no-emit-index-url --universal \
		--python-version 3.11 --no-header -o requirements.lock

clean:
	rm -rf $(VENV) demo/node_modules var .mypy_cache .ruff_cache .pytest_cache .hypothesis
