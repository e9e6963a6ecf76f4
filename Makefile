# Everyday commands; run them inside the virtual environment of CONTRIBUTING.md.
.PHONY: build test slow harden fuzz lint format bench docs clean

build:
	python -m pip install --quiet -e .

test:
	pytest

slow:
	pytest -m slow

# docs/hardening.md; HARDEN_CALLS=100 does a hundred times as much
harden:
	pytest -m "slow or not slow" tests/hardening $$(find tests -name 'test_*_mutants.py')

# Seconds are shared by the targets; FUZZ=mechanisms, say, runs one, guided by coverage with atheris
FUZZ ?= all
SECONDS ?= 600
fuzz:
	PYTHONPATH=tests python -m support.hardening.fuzz $(FUZZ) $(SECONDS)

lint:
	ruff check .
	ruff format --check .
	mypy
	pytest -q -n 0 -m slow tests/test_types.py
	stubtest $(patsubst accountant/_core/%.pyx,accountant._core.%,$(wildcard accountant/_core/*.pyx))
	cython-lint accountant
	lint-imports
	validate-pyproject pyproject.toml

format:
	ruff check --fix .
	ruff format .

bench:
	python benchmarks/compare.py

docs:
	sphinx-build -W -b html docs docs/_build/html

clean:
	rm -rf build dist docs/_build *.egg-info accountant/_core/*.so
