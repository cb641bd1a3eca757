# `make demo` sets everything up and shows the whole pipeline; `make test` and `make lint` check it.
PYTHON ?= $(firstword $(foreach p,python3.11 python3.12 python3.13 python3,$(shell command -v $(p) 2>/dev/null)))
VENV ?= .venv
BIN := $(VENV)/bin

FUZZ ?= 10000
SEED ?= 1
JOBS ?= 2

# tests start hundreds of processes: each would compile all modules anew
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo docs test test-all test-opencl lint check wheel fuzz damaged tables gallery models certificates operators schema arm android clean

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

test: $(VENV)/.installed
	$(BIN)/python -m pytest -n auto --dist worksteal

# all cases of the tests that run a sample of them, and what repeats chance; an hour and more
test-all: $(VENV)/.installed
	$(BIN)/python -m pytest -n auto --dist worksteal --all --all-node-tests

# each implementation of OpenCL that PyPI and Debian give; as root, because Debian's are entered with chroot
test-opencl: $(VENV)/.installed
	$(BIN)/python -m tests.opencl --json build/opencl.json

# damaged models, plans, rule files and databases: tracebacks, hangs, signals; 6,000 plans in C, under sanitizers
damaged: $(VENV)/.installed
	$(BIN)/python bench/damaged.py 5000 --seed $(SEED)
	$(BIN)/python -m pytest tests/runtime/c/test_sanitized.py --all

# the documentation as pages that need no network: build/site/index.html; a broken link or anchor is an error
docs: $(VENV)/.docs
	rm -rf build/site
	$(BIN)/python -m sphinx -q -W --keep-going -c docs/site -d build/doctrees . build/site
	@echo "build/site/index.html"

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	@touch $@

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd bench && MYPYPATH=.. ../$(BIN)/mypy --config-file ../pyproject.toml *.py

# rule files are laid out and right
check: $(VENV)/.installed
	$(BIN)/smartmem fmt --check $$(find rules -name '*.smr')
	$(BIN)/smartmem check rules

# the wheel, tried in an environment of its own without the checkout
wheel: $(VENV)/.installed
	$(BIN)/python -m pytest tests/test_wheel.py --all

# models over all operators, made small and kept in build/fuzz where they fail; FUZZ=1000 SEED=5 JOBS=8 change the run
fuzz: $(VENV)/.installed
	$(BIN)/python bench/fuzz.py --count $(FUZZ) --seed $(SEED) --jobs $(JOBS) --json build/fuzz/summary.json \
		--write docs/fuzzing.md

# one page with plots of the stored results, build/gallery.html
gallery: $(VENV)/.installed
	$(BIN)/python bench/gallery.py

tables: $(VENV)/.installed
	$(BIN)/python bench/tables.py --write README.md
	$(BIN)/python bench/tables.py --levels --write README.md

operators: models
	$(BIN)/python bench/backend_suite.py --json build/node_tests.json
	$(BIN)/python bench/operators.py --suite build/node_tests.json --models build/models.json \
		--write docs/operators.md --readme README.md

# a certificate of each of the paper's plans, replayed
certificates: $(VENV)/.installed
	$(BIN)/python bench/certificates.py --json build/certificates.json --write docs/certificates.md

models: $(VENV)/.installed
	$(BIN)/python bench/models.py --json build/models.json --write docs/models.md

# the readers of plan files from their schema; the tools stay out of the environment that runs plans
FORMAT := smartmem_rules/runtime/format
schema: build/schema/.installed
	build/schema/bin/python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. $(FORMAT)/plan.proto
	build/schema/bin/nanopb_generator -q -I $(FORMAT) -D runtime/c/src -f $(FORMAT)/plan.options plan.proto

build/schema/.installed:
	$(PYTHON) -m venv build/schema
	build/schema/bin/python -m pip install --quiet nanopb==0.4.9.1 grpcio-tools==1.62.3 "setuptools<80"
	@touch $@

# libsmartmem for 64-bit ARM, cross-compiled and run under qemu on a stub of OpenCL
arm: $(VENV)/.installed build/arm/.installed
	$(BIN)/python -m pytest -rs tests/runtime/c/test_arm.py

ARM64 := -oAPT::Architecture=arm64 -oAPT::Architectures=arm64 -oDir::State::Lists=$(CURDIR)/build/arm/lists
build/arm/.installed:
	$(PYTHON) -m venv build/arm/venv
	build/arm/venv/bin/python -m pip install --quiet ziglang==0.17.1
	mkdir -p build/arm/lists/partial build/arm/root build/arm/qemu
	cd build/arm && apt-get $(ARM64) update && apt-get $(ARM64) download libc6 && apt-get download qemu-user-static
	dpkg -x build/arm/libc6_*.deb build/arm/root
	dpkg -x build/arm/qemu-user-static_*.deb build/arm/qemu
	@touch $@

# the JNI side of android/ on this computer's JDK, and its Kotlin classes with Debian's compiler
android: $(VENV)/.installed build/android/.installed
	$(BIN)/python -m pytest -rs tests/android

KOTLIN := kotlin libjetbrains-annotations-java libtrove-intellij-java
build/android/.installed:
	mkdir -p build/android
	cd build/android && apt-get download $(KOTLIN) && for package in *.deb; do dpkg -x $$package .; done
	@touch $@

# installed anew only when the dependencies change: the checkout itself is imported in place
$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[all]'
	@$(BIN)/smartmem check $$(find rules -name '*.smr') > /dev/null
	@touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
