# Two commands do everything on a fresh machine: `make demo` and `make test`. Both set up .venv first, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TYPES := $(VENV)/types
export TF_CPP_MIN_LOG_LEVEL ?= 3

.PHONY: demo test setup lint types unit format wheel clean

demo: setup
	$(BIN)/newsembed demo --output demo-output

test: setup lint types unit

setup: $(STAMP)

# Reinstalled when the dependencies change, so that a second run starts at once.
$(STAMP): setup.py constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; run: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@echo "installing into $(VENV): about 4 GB and 3-6 minutes, once"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The root folder is the package, so mypy needs a place where it is called newsembed.
types: setup
	@mkdir -p $(TYPES) && ln -sfn $(CURDIR) $(TYPES)/newsembed
	MYPYPATH=$(TYPES) $(BIN)/mypy -p newsembed.formats -p newsembed.tasks -p newsembed.models -p newsembed.beam_pipelines -p newsembed.training -p newsembed.evaluation -p newsembed.serving -p newsembed.newsroom -p newsembed.studies -p newsembed.launch

unit: setup
	$(BIN)/python -m pytest -n 2 --dist loadfile  # a file's tests stay together: they share fixtures

format: setup
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .

wheel: setup
	$(BIN)/python -m build

clean:
	rm -rf $(VENV) build dist *.egg-info demo-output .mypy_cache .ruff_cache .pytest_cache
