# Every target sets itself up in .venv; it needs only Python 3.11 or newer and pip.
PYTHON ?= python3
BIN := .venv/bin
SOURCES := pyproject.toml constraints.txt
PIP := $(BIN)/python -m pip install --quiet -c constraints.txt
PIP_PLUG := .venv-plug/bin/python -m pip install --quiet -c constraints.txt
PIP_LIGHT := .venv-light/bin/python -m pip install --quiet -c constraints.txt
PIP_FLAIR := .venv-flair/bin/python -m pip install --quiet

.PHONY: help demo test test-plug check format docs dist bench fuzz clean

help:
	@echo "make demo    show what bilmo does, in a minute"
	@echo "make test    format check, lint, types and all tests"
	@echo "make test-plug  the bridges to other libraries, with the real libraries, in .venv-plug, .venv-light and .venv-flair"
	@echo "make check   the same without the tests (seconds)"
	@echo "make format  format the code and apply safe fixes"
	@echo "make docs    build the documentation site and check its links; opens as site/index.html"
	@echo "make dist    build and check the wheel and the source archive"
	@echo "make bench   compare the speed with other systems; tables go to benchmarks/results"
	@echo "make fuzz    try damaged files, hostile text, random commands and kills (CASES=2000, or MINUTES=10)"
	@echo "make clean   remove .venv, caches and build results"

# The stamps are newer than the files they depend on, or the environment is made again.
.venv/ready: $(SOURCES)
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(PIP) torch
	$(PIP) --group dev -e ".[all]"
	@touch $@

.venv-plug/ready: $(SOURCES)
	$(PYTHON) -m venv .venv-plug
	.venv-plug/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(PIP_PLUG) torch
	$(PIP_PLUG) --group plug -e ".[all,plug]"
	$(PIP_PLUG) --no-deps allennlp
	@touch $@

# bilmo without torch, as the guide to ONNX shows it.
.venv-light/ready: $(SOURCES)
	$(PYTHON) -m venv .venv-light
	.venv-light/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(PIP_LIGHT) --no-deps -e .
	$(PIP_LIGHT) numpy onnxruntime regex rjieba opencc
	@touch $@

# flair needs an older transformers. Everything else comes from .venv-plug, so that torch is not installed again.
.venv-flair/ready: .venv-plug/ready
	$(PYTHON) -m venv .venv-flair
	.venv-flair/bin/python -c 'import pathlib, sys, sysconfig; \
	  pathlib.Path(sysconfig.get_path("purelib"), "shared.pth").write_text("\n".join(sys.argv[1:]))' \
	  "$$(.venv-plug/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" "$(CURDIR)/src"
	$(PIP_FLAIR) torch==$$(sed -n 's/^torch==//p' constraints.txt) flair==0.15.1 "transformers<5"
	@touch $@

.venv/docs: .venv/ready
	$(PIP) --group docs
	@touch $@

.venv/release: .venv/ready
	$(PIP) --group release
	@touch $@

demo: .venv/ready
	@$(BIN)/python examples/demo.py

check: .venv/ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: .venv/ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# axe-core checks that the page is accessible; without npm, its tests are skipped.
.venv/axe: .venv/ready
	-npm install --silent --no-audit --no-fund --no-save --prefix $@ axe-core@4.14.0
	@touch -c $@

test: check .venv/axe
	$(BIN)/python -m pytest -n 2

test-plug: .venv-plug/ready .venv-light/ready .venv-flair/ready
	.venv-plug/bin/python -m pytest -n 2 -c tests_plug/pytest.ini tests_plug
	.venv-flair/bin/python -m pytest -c tests_flair/pytest.ini tests_flair

docs: .venv/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	$(BIN)/python scripts/check_site.py site

dist: .venv/release
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/*
	$(BIN)/python scripts/check_dist.py dist

bench: .venv/ready
	$(BIN)/python benchmarks/run.py

fuzz: .venv/ready
	cd tests && ../$(BIN)/python -m fuzz.campaign $(if $(CASES),--cases $(CASES)) $(if $(MINUTES),--minutes $(MINUTES)) \
	  $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only "$(ONLY)") $(if $(SAVE),--save)

clean:
	rm -rf .venv .venv-plug .venv-light .venv-flair .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist site
