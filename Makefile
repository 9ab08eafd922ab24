# `make run` and `make test` need Python 3.11 or newer, make and PyPI, and bring the rest.
# Another interpreter: make PYTHON=python3.12 test. Some tests only: make test PYTEST_ARGS=tests/house
PYTHON ?= python3
PYTEST_ARGS ?=
BENCH_ARGS ?=
FUZZ_ARGS ?=
GUARD_ARGS ?=
KILLS_ARGS ?=
OUT ?= out/demo

.DEFAULT_GOAL := help
.PHONY: help run test lint bench fuzz guard lock clean environment

help:
	@echo "make run    the main job on an embedded cluster: clients, tap, capture, Spark, report"
	@echo "make test   lint, types, import directions, tests"
	@echo "make bench  flexwire beside its rivals, pinned: messages per second and ratios"
	@echo "make fuzz   any bytes against thirteen laws, a minute each: messages, JSON, records, captures, specs"
	@echo "make guard  a million damaged inputs for each kernel, against protected pages: ten minutes;"
	@echo "            analyses that are killed at random moments: five minutes; secrets in all fields, searched for"
	@echo "make lint   the same without the tests"
	@echo "make lock   pin the dependencies anew, at the newest versions pyproject.toml allows"
	@echo "make clean  remove what the other targets wrote, except .venv"

run: environment
	.venv/bin/flexwire demo --out $(OUT)

test: lint
	.venv/bin/pytest $(PYTEST_ARGS)

lint: environment
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports

environment:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "flexwire needs Python 3.11 or newer, and $(PYTHON) is %d.%d; name another: make PYTHON=python3.12" % sys.version_info[:2])'
	@$(PYTHON) tools/environment.py

bench: environment
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement benchmarks/requirements.lock
	.venv/bin/python benchmarks/messages.py $(BENCH_ARGS)
	.venv/bin/python benchmarks/records.py $(BENCH_ARGS)

fuzz: environment
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement fuzz/requirements.lock
	.venv/bin/python -m fuzz $(FUZZ_ARGS)

guard: environment
	.venv/bin/python -m fuzz.guard $(GUARD_ARGS)
	.venv/bin/python -m fuzz.kills $(KILLS_ARGS)
	.venv/bin/python -m fuzz.leaks

lock: environment
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --extra dev \
	  --generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-find-links \
	  --output-file requirements.lock pyproject.toml

clean:
	rm -rf out .build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks
	find src tests tools fuzz -name __pycache__ -type d -prune -exec rm -rf {} +
