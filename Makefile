# Each target sets up all that it needs in .venv, once. A fresh machine needs only python3 with its venv module.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# Without a C compiler, the ziglang wheel brings one.
comma := ,
ZIG := $(if $(HARP_CC)$(shell command -v cc || command -v gcc || command -v clang),,$(comma)zig)

# The tests of programs, which are the same on each device.
PROGRAMS := tests/numpy tests/random tests/transforms tests/property tests/lax tests/standard

.PHONY: help demo test test-all coverage test-opencl test-opencl-wide test-numpy fuzz soak matrix lint site wheel clean

help:
	@echo "make demo    train a classifier of handwritten digits; writes a picture"
	@echo "make test    run a case of each test: eight to ten minutes on two cores"
	@echo "make test-all  run all cases of all tests: half an hour or more"
	@echo "make coverage  the same, and how many lines of harp they reach: an hour or more"
	@echo "make test-opencl  run the tests of programs on an OpenCL device; DEVICE=opencl:1 is another one than the first"
	@echo "make test-opencl-wide  run them with the kernels for graphics processors, whatever the device is"
	@echo "make test-numpy  run them with the NumPy interpreter, as on a machine without a compiler"
	@echo "make fuzz    search for sizes at which harp is wrong, for an hour; FUZZ_ARGS='--minutes 5', '--help'"
	@echo "make soak    interrupts, kills, damage, limits, full disks, random programs, for an hour; SOAK_ARGS='--minutes 5', '--help'"
	@echo "make matrix  every chain of three transforms, of every function of tests/transforms/corpus.py, compiled: an hour or more"
	@echo "make lint    formatting, lint, types, layers"
	@echo "make site    the documentation as a web site with a reference and search; open build/site/index.html"
	@echo "make wheel   build dist/*.whl"
	@echo "make clean   remove .venv and all that was built"

demo: $(VENV)/demo.stamp
	$(BIN)/python examples/digits.py

test: $(VENV)/test.stamp
	HARP_TESTS=some HARP_TESTS_OPTIMIZE=0 $(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

test-all: $(VENV)/test.stamp
	$(BIN)/python -m pytest -n auto $(PYTEST_ARGS)

coverage: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n auto --cov --cov-report=term --cov-fail-under=95 $(PYTEST_ARGS)

test-opencl: $(VENV)/test.stamp
	HARP_DEVICE=$(or $(DEVICE),opencl) $(BIN)/python -m pytest -n auto $(PROGRAMS) tests/examples $(PYTEST_ARGS)

test-opencl-wide: $(VENV)/test.stamp
	HARP_WIDE=1 HARP_DEVICE=$(or $(DEVICE),opencl) $(BIN)/python -m pytest -n auto $(PROGRAMS) tests/examples $(PYTEST_ARGS)

test-numpy: $(VENV)/test.stamp
	HARP_CC=none $(BIN)/python -m pytest -n auto $(PROGRAMS) $(PYTEST_ARGS)

fuzz: $(VENV)/test.stamp
	$(BIN)/python tests/property/fuzz.py --all $(FUZZ_ARGS)

soak: $(VENV)/test.stamp
	$(BIN)/python tests/soak/run.py $(SOAK_ARGS)

matrix: $(VENV)/test.stamp
	HARP_MATRIX=1 $(BIN)/python -m pytest -n auto tests/transforms/test_compositions.py $(PYTEST_ARGS)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff format --check .
	find harp -name '*.[ch]' | xargs $(BIN)/clang-format --dry-run --Werror
	$(BIN)/ruff check .
	$(BIN)/mypy --strict harp
	$(BIN)/lint-imports
	$(BIN)/vulture

site: $(VENV)/site.stamp
	rm -rf build/site
	$(BIN)/python docs/site/pages.py build/pages
	$(BIN)/python -m sphinx -q -W --keep-going -E -c docs/site -d build/doctrees build/pages build/site
	@echo "open build/site/index.html"

wheel: $(VENV)/dev.stamp
	rm -rf dist
	$(BIN)/python -m build --wheel --outdir dist .
	$(BIN)/python .ci/compress.py dist/*.whl

clean:
	rm -rf $(VENV) build dist .coverage .coverage.* htmlcov
	rm -rf fuzz-findings soak-findings .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/%.stamp: pyproject.toml | $(VENV)/bin/python
	@echo "pip installs harp and what '$*' needs in $(VENV), once; this may take some minutes"
	$(BIN)/python -m pip install --disable-pip-version-check --editable ".[$*$(ZIG)]"
	@touch $@
