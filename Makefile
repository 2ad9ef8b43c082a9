# Every target sets itself up in .venv; nothing is needed but Python 3.11 or newer and pip.
PYTHON ?= python3
BIN := .venv/bin
SOURCES := pyproject.toml constraints.txt

.PHONY: help demo test check bench docs clean

help:
	@echo "make demo   see what bilmo does, in a minute"
	@echo "make test   format, lint, types and all tests"
	@echo "make check  the same without the tests (seconds)"
	@echo "make docs   run every command and example of README and docs"
	@echo "make bench  speed against peers; tables go to benchmarks/results"
	@echo "make clean  remove .venv and caches"

# The stamp is newer than what it was made from, or the environment is made again.
.venv/ready: $(SOURCES)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet -c constraints.txt --group dev -e ".[all]"
	@touch $@

demo: .venv/ready
	@$(BIN)/python examples/demo.py

check: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test: check
	$(BIN)/python -m pytest -n 2

docs: .venv/ready
	$(BIN)/python -m pytest tests/test_docs.py -v

bench: .venv/ready
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
