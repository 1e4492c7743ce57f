# Everything a developer or a machine starts. All paths are relative, so the folder may lie anywhere.
.DEFAULT_GOAL := help
.PHONY: help setup check test full costs night planted machines repositories guests lint types imports tests units laws waiting demo bench schemas man lock clean
SHELL := /bin/sh
.SHELLFLAGS := -eu -c
# Nothing of the caller's Python or pytest settings reaches the runs below.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP PYTHONOPTIMIZE PYTEST_ADDOPTS MYPYPATH

PYTHON_CODE := pmagent actors contracts events firmware projections replay tests benchmarks scripts examples
BIN := .venv/bin
UNITS := tests/unit/
WAITING := tests/browser/ tests/crash/ tests/integration/
MACHINES := tests/contract/test_storages.py tests/integration/test_log_copy.py $(wildcard tests/*/test_postgres_*.py tests/*/test_workers*.py)
# System packages that tests use and that setup installs as root, else names.
export SYSTEM_PACKAGES := git strace lnav bubblewrap chromium-headless-shell xvfb x11-xkb-utils postgresql pgbouncer etcd-server faketime

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 18

setup: ## make .venv with pinned, hash-checked packages and .venv/bin/pmagent
	@sh scripts/setup.sh requirements-dev.txt

test: setup ## setup and every check; tests/costly.txt and tests/night.txt name the tests that are left out
	@$(MAKE) --no-print-directory check

full: setup ## the same with all costly tests: before a release, or a merge that touches several areas
	@PMAGENT_TESTS=full $(MAKE) --no-print-directory check

# Tests that compute (units, laws) and tests that wait for processes, browsers and disks are pools, side by side.
check: ## lint, types, import rules, tests, side by side (after setup)
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target lint imports units laws waiting types

night: setup repositories ## every check with all examples, seeds and kills, and the planted bugs: over an hour
	@PMAGENT_TESTS=night $(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory planted

repositories: setup ## make .repositories from published sources; tests of pmagent init run in them
	@sh scripts/repositories.sh

guests: ## install the agents that tests run, from npm at pinned versions, into the user's cache (1.1 GB)
	@sh scripts/guests.sh

planted: setup ## plant each bug of tests/planted/bugs.toml in a copy; its test must fail (BUGS="ID ...": some)
	PMAGENT_TESTS=night $(BIN)/python -m tests.support.bugs $(BUGS)

machines: setup ## tests of logs in PostgreSQL, all of them, with real servers that fail; make test tries a share
	@sh scripts/machines.sh
	PMAGENT_TESTS=night $(BIN)/python -I -m pytest -n 2 --dist loadscope $(MACHINES)

lint:
	$(BIN)/python -I -m ruff check $(PYTHON_CODE)

types:
	$(BIN)/python -I -m mypy

imports:
	$(BIN)/lint-imports --no-logo

tests: ## the tests alone
	@$(MAKE) --no-print-directory --jobs=3 --output-sync=target units laws waiting

# Units have two workers, which take the processors that the other pools leave; the laws have one.
units:
	+MAKEFLAGS= $(BIN)/python -I -m pytest -n 2 --dist loadscope $(UNITS)

laws:
	+MAKEFLAGS= $(BIN)/python -I -m pytest -n 0 $(filter-out $(UNITS) $(WAITING),$(wildcard tests/*/))

# A module's tests share its daemons and browsers, so one process runs them all.
waiting:
	+MAKEFLAGS= $(BIN)/python -I -m pytest -n 4 --dist loadscope $(WAITING)

costs: setup ## measure the tests, and write tests/costly.txt
	@measured=$$(mktemp); PMAGENT_TESTS=full PMAGENT_COSTS=$$measured $(MAKE) --no-print-directory tests; \
	$(BIN)/python -I -m tests.support.costs $$measured; rm $$measured

demo: setup ## run the main job on the example workspace
	@$(BIN)/python -I examples/demo.py

bench: setup ## measure, beside peers and raw limits
	@sh scripts/setup.sh requirements-bench.txt
	$(BIN)/python benchmarks/run.py

schemas: setup ## write contracts/schemas from the payload types
	$(BIN)/python -I -m pmagent.contracts.generate

man: setup ## write docs/man from the help
	$(BIN)/python -I scripts/man.py

lock: ## pin requirements*.txt anew from pyproject.toml
	sh scripts/lock.sh

clean: ## remove everything that can be made again
	rm -rf .venv .repositories .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
