# `make demo` sets everything up and shows the whole pipeline; `make test` and `make lint` check it.
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3,$(shell command -v $(p) 2>/dev/null)))
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test lint tables models operators clean

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

test: $(VENV)/.installed
	$(BIN)/python -m pytest -n auto

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd bench && MYPYPATH=.. ../$(BIN)/mypy --config-file ../pyproject.toml *.py

tables: $(VENV)/.installed
	$(BIN)/python bench/tables.py --write README.md
	$(BIN)/python bench/tables.py --levels --write README.md

operators: models
	$(BIN)/python bench/backend_suite.py --json build/node_tests.json
	$(BIN)/python bench/operators.py --suite build/node_tests.json --models build/models.json \
		--write docs/operators.md --readme README.md

models: $(VENV)/.installed
	$(BIN)/python bench/models.py --json build/models.json --write docs/models.md

# installed anew only when the dependencies change: the checkout itself is imported in place
$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all]'
	@$(BIN)/smartmem check $$(find rules -name '*.smr') > /dev/null
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
