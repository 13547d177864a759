# make demo       train a small model on the phrasebook inside, translate, and write demo/report.html
# make test       lint, and the tests that take seconds
# make test-all   the same with the tests that take minutes
# make lint       format, style and types of the code, and faults of the documentation
# make attack     damage files, kill commands, send hostile texts, documents and requests, fuzz all readers, and plant
#                 faults in the source, for MINUTES=10 each
# make audit      look up known vulnerabilities and licences of what is installed, and list it in build/sbom.json
# make docs       build the documentation: site/index.html
# make dist       build the wheel and the source archive in dist/
#
# Nothing but make and Python 3.11 or newer is needed; everything else is installed into .venv. Variables:
#
# PYTHON=python3.12                                      another Python
# TORCH_INDEX=https://download.pytorch.org/whl/cpu       PyTorch for CPUs alone: 200 MB instead of some GB on Linux
# PIP_ARGS="--no-index --find-links wheels"              whatever else pip shall be told

PYTHON ?= python3
TORCH_INDEX ?=
PIP_ARGS ?=

BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
	$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) $(PIP_ARGS)
FAST := -m "not slow"
MINUTES ?= 10

.PHONY: demo test test-all lint pytest attack audit docs dist clean

demo: .venv/installed
	$(BIN)/transduce demo --out demo

test: lint pytest

test-all: FAST :=
test-all: lint pytest

lint: .venv/installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy --num-workers auto
	$(BIN)/python tools/check_docs.py

# Three workers also keep two cores busy, since tests wait for servers and pages; all share the compiled modules.
pytest: .venv/installed-dev | lint
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -n 3 --dist loadfile $(FAST)

attack: .venv/installed-attack
	for attack in damage kills texts documents server endurance fuzz mutants; do \
		OMP_NUM_THREADS=1 $(BIN)/python benchmarks/attack/$$attack.py --minutes $(MINUTES) || exit 1; done

audit: .venv/installed-audit
	@mkdir -p build
	$(BIN)/cyclonedx-py environment --output-reproducible --output-file build/sbom.json
	$(BIN)/pip-licenses --from=mixed --partial-match --fail-on=GPL --summary
	$(BIN)/pip-audit --skip-editable --progress-spinner off

docs: .venv/installed-docs
	$(BIN)/python docs/generate.py build/docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "The documentation is in site/index.html"

dist: .venv/installed-dev
	rm -rf dist
	$(BIN)/python -m build --no-isolation

clean:
	rm -rf .venv demo build dist site

.venv/installed: pyproject.toml constraints.txt | .venv/bin/python
	@echo "Installing transduce and what it needs into .venv ..."
	@$(INSTALL) -e ".[fast,serve]"
	@touch $@

.venv/installed-dev: .venv/installed
	@echo "Installing what the tests need ..."
	@$(INSTALL) -e ".[dev]"
	@touch $@

.venv/installed-docs: .venv/installed
	@echo "Installing what the documentation needs ..."
	@$(INSTALL) -e ".[docs]"
	@touch $@

.venv/installed-attack: .venv/installed-dev
	@echo "Installing what the attacks need ..."
	@$(INSTALL) -e ".[attack]"
	@touch $@

.venv/installed-audit: .venv/installed-dev
	@echo "Installing what audits the installed packages ..."
	@$(INSTALL) -e ".[audit]"
	@touch $@

.venv/bin/python:
	@command -v $(PYTHON) > /dev/null || \
		{ echo "There is no '$(PYTHON)' here: install Python 3.11 or newer, or name one: make PYTHON=..."; exit 1; }
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || \
		{ echo "transduce needs Python 3.11 or newer, $(PYTHON) is older: name another, make PYTHON=..."; exit 1; }
	@$(PYTHON) -c "import venv, ensurepip" 2> /dev/null || \
		{ echo "$(PYTHON) lacks the modules venv and ensurepip: on Debian and Ubuntu, apt install python3-venv"; exit 1; }
	@$(PYTHON) -m venv .venv
