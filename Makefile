# make run: set up and run the bundled sample.  make test: set up and pass every check.
PYTHON ?= python3.11
VENV   ?= .venv
BIN    := $(VENV)/bin

.PHONY: run run-local test lint soak audit clean

run: $(VENV)/.installed
	$(BIN)/suffice run sample --lake lake

# A real model in the process, 1.2 GB of packages: some 40 minutes on two idle cores; cut off, it goes on where it was.
run-local: $(VENV)/.installed-local
	$(BIN)/suffice run local_sample --lake lake
	$(BIN)/suffice calibrate 'strict(model=local)' --protocol local_sample --limit 10 --lake lake
	$(BIN)/suffice run local_facts --lake lake

test: lint
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

soak: $(VENV)/.installed-test
	$(BIN)/python -m tests.soak

# Known advisories against the pinned versions; docs/dependencies.md. Needs a network.
audit:
	test -x $(VENV)-audit/bin/pip-audit || { $(PYTHON) -m venv $(VENV)-audit && $(VENV)-audit/bin/pip install --quiet pip-audit==2.10.1; }
	$(VENV)-audit/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip --vulnerability-service osv --timeout 10 --progress-spinner off

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[test]'
	touch $(VENV)/.installed $@

$(VENV)/.installed-local: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[local]'
	touch $(VENV)/.installed $@

clean:
	rm -rf $(VENV) $(VENV)-audit lake
