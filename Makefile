PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
export PYTHONDONTWRITEBYTECODE :=
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint bench reproduce dist clean

demo: $(VENV)/.lab        ## a quick version of the paper's comparison, with a table and a figure
	$(BIN)/driftbandit demo

reproduce: $(VENV)/.lab   ## the paper's comparison at full size
	$(BIN)/driftbandit reproduce

test: $(VENV)/.test lint  ## lint, types, tests (compiled and interpreted)
	$(BIN)/python -m pytest -n 2 --dist loadfile
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m "kernel" --override-ini filterwarnings=default

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

bench: $(VENV)/.test      ## the speed figures, as ratios from one run
	$(BIN)/python -m benchmarks.speed

dist: $(VENV)/.test
	$(BIN)/python -m build

clean:
	rm -rf $(VENV) dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.lab: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[lab]'
	@touch $@

$(VENV)/.test: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable '.[test]'
	@touch $(VENV)/.lab $@
