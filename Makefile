# Two commands do everything on a fresh machine: `make demo` and `make test`. Both set up .venv first, once.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TYPES := $(VENV)/types
# Two processes; the tests of a file stay together, because they share fixtures; tests/file_order.py has the order of the files.
WORKERS := -n 2 --dist loadfile --no-loadscope-reorder
export TF_CPP_MIN_LOG_LEVEL ?= 3

.PHONY: demo test setup lint types docs unit browser coverage attack memory mutants engines dataflow-worker stores gpu format wheel clean

demo: setup
	$(BIN)/newsembed demo --output demo-output

test: setup lint types docs unit

setup: $(STAMP)

# Installs again when the dependencies change; otherwise a second run starts at once.
$(STAMP): setup.py constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' || { echo "Python 3.11, 3.12 or 3.13 is needed; run: make PYTHON=python3.13 $(MAKECMDGOALS)"; exit 1; }
	@echo "installing into $(VENV): about 4 GB and 3-6 minutes, once"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The root folder is the package, so mypy needs a folder in which it is called newsembed.
types: setup
	@mkdir -p $(TYPES) && ln -sfn $(CURDIR) $(TYPES)/newsembed
	MYPYPATH=$(TYPES) $(BIN)/mypy -p newsembed.formats -p newsembed.tasks -p newsembed.models -p newsembed.learning -p newsembed.beam_pipelines -p newsembed.training -p newsembed.t5x_bridge -p newsembed.evaluation -p newsembed.serving -p newsembed.newsroom -p newsembed.updates -p newsembed.studies -p newsembed.launch

# The site, in build/docs; a link that leads nowhere is an error. Nothing is downloaded.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

unit: setup
	$(BIN)/python -m pytest $(WORKERS)

# The tests of the page in a real browser: Debian's chromium, or the one that Playwright fetches.
browser: setup
	$(BIN)/python -m pip install --quiet --constraint constraints.txt playwright
	command -v chromium > /dev/null || $(BIN)/playwright install chromium
	$(BIN)/python -m pytest tests/serving/explorer/test_page.py

# Lines and branches, in all processes that the tests start; slower than `make unit`. Floors: 90 % in all, 80 % in each folder.
coverage: setup
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(WORKERS) $(TESTS)
	$(BIN)/coverage combine --quiet
	@for file in */__init__.py; do \
	  printf '%-20s' $${file%/*}; $(BIN)/coverage report --format=total --fail-under=80 --include="$${file%/*}/*" || low=1; \
	done; printf '%-20s' all; $(BIN)/coverage report --format=total --fail-under=90 && [ -z "$$low" ]

# The tests that take long (kills, damage, eight devices, documentation, more architectures), then mutated input files, each read by its command: a table of how the
# tries ended. ATTACK="--tries 2000 --seed 2" for more.
attack: setup
	$(BIN)/python -m pytest $(WORKERS) -m long --ignore=tests/beam_pipelines/test_limited_memory.py
	$(BIN)/python tests/attack/fuzz.py --tries 400 $(ATTACK)
	$(BIN)/python tests/attack/interrupted.py --kills 20 $(INTERRUPT)
	$(BIN)/python tests/attack/decode_in_threads.py

# Does a job hold the corpus? Each job of a build reads ten times the articles in the memory that the small corpus needed.
memory: setup
	$(BIN)/python -m pytest -m long tests/beam_pipelines/test_limited_memory.py

# The build of the demo on Prism, with workers killed; needs Go. ENGINES=--engine=flink-cluster, flink or spark needs Maven and Java 17.
engines: setup
	@test -d demo-output/crawl || { echo "run make demo first: its crawl is the input"; exit 1; }
	$(BIN)/python benchmarks/engines.py --demo=demo-output --output=build/engines $(ENGINES)

# All jobs by workers with what a job stages for Dataflow and nothing else; needs Go, and a package index.
dataflow-worker: setup
	@test -d demo-output/crawl || { echo "run make demo first: its crawl is the input"; exit 1; }
	$(BIN)/python benchmarks/dataflow_worker.py --demo=demo-output --output=build/dataflow-worker

# The tests of object stores, then a build, training, evaluation and export with every path on gs:// and s3://, over a
# network with faults: as on disk? Needs Go, which builds a server of gs://.
stores: setup
	@test -d demo-output/crawl || { echo "run make demo first: its crawl is the input"; exit 1; }
	$(BIN)/python benchmarks/stores.py --demo=demo-output --output=build/stores

# Training steps, encoding and their share of the peak on this machine's NVIDIA GPU, in ten minutes; for TPUs run the script.
# GPU="--work work --start minilm --minutes 60" lifts MiniLM on a build as well.
gpu: setup
	@command -v nvidia-smi > /dev/null || { echo "no NVIDIA GPU here; FLOPs and memory alone: $(BIN)/python benchmarks/gpu.py --compile_only"; exit 1; }
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[gpu]'
	$(BIN)/python benchmarks/gpu.py $(GPU)

# Small faults in modules: which ones does no test notice? Hours for 300 on two cores; the same command goes on.
mutants: setup
	$(BIN)/python tests/mutants.py $(MUTANTS)

format: setup
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .

wheel: setup
	$(BIN)/python -m build

clean:
	rm -rf $(VENV) build dist *.egg-info demo-output mutants .coverage* .mypy_cache .ruff_cache .pytest_cache
