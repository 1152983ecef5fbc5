# kteardown: `make demo` sets everything up and runs a part of the freezer experiment; `make test` tests.
PY := .venv/bin/python

# The tests start some hundred Python processes. Each would compile the whole package again without bytecode.
unexport PYTHONDONTWRITEBYTECODE
# Tools from the virtual environment, such as clang-format at one version, come first.
export PATH := $(CURDIR)/.venv/bin:$(PATH)

# Each process has tests of its own from the start, so that few of them need the same fixtures.
UNIT_TESTS := .venv/bin/pytest -n 2 --dist worksteal --durations=10 tests/unit
# Tests that share a kernel or a run are in one file, and stay in one process.
VM_TESTS := .venv/bin/pytest -n 2 --dist loadfile --durations=10 tests/vm tests/metal
SLURM_TESTS := .venv/bin/pytest --durations=10 tests/slurm
# One process: all tests share a host with KVM, which is emulated on one thread. `make test` runs one file of them.
KVM_TESTS := .venv/bin/pytest --durations=10 tests/kvm
PAGE_TESTS := .venv/bin/pytest -n 2 --dist loadfile --durations=10 tests/page

.PHONY: help demo setup setup-dev lint format test test-newest test-hosts lock dist image test-all test-unit test-vm test-kvm test-page screenshots recording bench tables figures \
	confirm release-check coverage series-form docs man clean

help:
	@echo "make demo      set up, build two kernels, run a part of the freezer experiment, print its table"
	@echo "make test      set up, unit tests, tests that build and boot one base kernel, and the ends of guests under KVM"
	@echo "make test-changed  lint, and the tests that a change can affect (COMMIT=... for what differs from that commit)"
	@echo "make test-all  the same with every test that builds and boots kernels (hours), and a record of it"
	@echo "make test-hosts  the README's commands on fresh hosts of several distributions (HOST=... for one; a part of a release)"
	@echo "make test-newest the unit tests with the newest version of each library, in an environment of its own"
	@echo "make test-kvm  the lab under KVM, on an emulated host (tests/kvm; a part of test-all)"
	@echo "make test-page the pages in a real browser, with axe (tests/page; a part of test-all)"
	@echo "make screenshots  the pictures of the documentation, by tests/page; make recording is the one of the demo"
	@echo "make lint      ruff, mypy --strict, import layers, sizes, texts of the series, clang-format, agent with sanitizers"
	@echo "make bench     time to the first record; speed and error rates of the statistics"
	@echo "make tables    our published tables and figures, from findings/results into the texts"
	@echo "make figures   our published results, each with its commit; with NAME=... measures one again"
	@echo "make confirm   whether our published figures still hold, from one boot of each kernel (NAME=... for one)"
	@echo "make release-check  lint, our findings, and the full run of the tests: is any of them older than the tree?"
	@echo "make coverage  which kernel functions each workload executes, in boots of their own (SOURCE=... for one kernel)"
	@echo "make series-form  checkpatch, git am and seven kinds of builds of each series (NAME=... for one)"
	@echo "make docs      the documentation as a site, in build/site"
	@echo "make dist      the wheel and the source distribution, in build/dist"
	@echo "make image     a container image with all that kteardown needs (BASE=... for its base)"
	@echo "make man       the man pages, in build/man"

setup: .venv/.ready
setup-dev: .venv/.ready-dev

.venv/.ready: pyproject.toml scripts/setup
	@scripts/setup

.venv/.ready-dev: pyproject.toml requirements-dev.txt scripts/setup
	@scripts/setup dev

# One series, one workload and three sizes: the first answer. scripts/recording.py records the same.
# PATH is that of the user's shell, so that the commands which it names work there.
demo: .venv/.ready
	@PATH="$${PATH#*:}" .venv/bin/kteardown run freezer --quick --variant freezer-skip-exited --workload zombies --set zombies=0,3000,6000
	@echo
	@echo "Now your own patch: git -C ~/linux diff | .venv/bin/kteardown try - --dry-run   (without --dry-run: measure it)"
	@echo "The whole experiment, with another series, more sizes and the cgroup freezer: .venv/bin/kteardown run freezer"

# The steps are independent, and run side by side; each prints its output when it ends.
LINT := ruff mypy layers sizes doors texts agent plugins coverage

lint: .venv/.ready-dev
	@$(MAKE) -s -k -j 2 --output-sync=target $(addprefix lint-,$(LINT))

lint-ruff:
	.venv/bin/ruff check
	.venv/bin/ruff format --check
lint-mypy:
	.venv/bin/mypy
lint-layers:
	.venv/bin/lint-imports --no-cache
lint-sizes:
	$(PY) scripts/check_sizes.py
lint-doors:
	$(PY) scripts/check_doors.py
lint-texts:
	.venv/bin/pytest -q tests/unit/kernels/test_series_texts.py
lint-agent:
	$(MAKE) -s -C agent format-check check
lint-plugins:
	clang-format --style=file:agent/.clang-format --dry-run -Werror plugins/*.[ch] plugins/*/*.[ch]
lint-coverage:
	$(PY) scripts/coverage_maps.py check

format: .venv/.ready-dev
	.venv/bin/ruff format
	.venv/bin/ruff check --fix
	$(MAKE) -s -C agent format
	clang-format --style=file:agent/.clang-format -i plugins/*.[ch] plugins/*/*.[ch]

test: .venv/.ready-dev
	$(UNIT_TESTS) -m "not full"
	$(VM_TESTS) tests/kvm -m "not full"

# COMMIT=...: what differs from that commit, by default from the last one.
test-changed: .venv/.ready-dev
	$(PY) scripts/changed_tests.py $(COMMIT)

test-all: lint
	@scripts/setup dev full
	$(PY) scripts/full_run.py begin
	$(UNIT_TESTS) --hypothesis-profile=search --timeout=1800 --journal build/full-run/unit.ndjson
	$(VM_TESTS) --journal build/full-run/vm.ndjson
	$(KVM_TESTS) --journal build/full-run/kvm.ndjson
	$(PAGE_TESTS) --journal build/full-run/page.ndjson
	$(SLURM_TESTS) --journal build/full-run/slurm.ndjson
	$(PY) scripts/hosts.py run
	$(PY) scripts/full_run.py record unit vm kvm page slurm

test-hosts: .venv/.ready-dev
	$(PY) scripts/hosts.py run $(HOST)

test-newest:
	python3 -I -m venv --clear build/newest
	build/newest/bin/python -P -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	build/newest/bin/python -P -m pytest -n 2 --dist worksteal -m "not full" tests/unit

# The versions with which kteardown is developed. No addresses: each machine has its own source of packages.
lock: .venv/.ready-dev
	@echo '# The versions with which kteardown is developed, for each Python: made by `make lock`.' > requirements-dev.txt
	$(PY) -P -m uv pip compile -q --universal --python-version 3.11 --extra dev --no-emit-index-url --no-annotate \
		--no-header --no-emit-package kteardown pyproject.toml >> requirements-dev.txt

dist: .venv/.ready-dev
	rm -rf build/dist
	$(PY) -P -m uv build --quiet --out-dir build/dist
	@ls build/dist

image:
	scripts/image $(BASE)

test-unit: .venv/.ready-dev
	$(UNIT_TESTS)

test-vm: .venv/.ready-dev
	$(VM_TESTS) -m "not full"

test-kvm: .venv/.ready-dev
	$(KVM_TESTS)

test-page: .venv/.ready-dev
	$(PAGE_TESTS)

screenshots: .venv/.ready-dev
	KTEARDOWN_SCREENSHOTS=docs/images $(PAGE_TESTS) -k picture

# Runs the demo in a terminal: 1 to 5 minutes.
recording: .venv/.ready-dev
	@mkdir -p build
	PATH="$(CURDIR)/.venv/bin:$$PATH" $(PY) scripts/recording.py record build/demo.cast
	$(PY) scripts/recording.py draw build/demo.cast docs/images/demo.svg

bench: .venv/.ready-dev
	$(PY) bench/boot_time.py
	$(PY) bench/stats_speed.py
	$(PY) bench/report_speed.py
	$(PY) findings/scripts/validate_stats.py --quick
	$(PY) findings/scripts/validate_hunt.py --quick

# Our own figures, which are no part of the tool: findings/README.md.
FIGURES := $(PY) findings/scripts/figures.py

tables: .venv/.ready-dev
	@$(FIGURES) tables

figures: .venv/.ready-dev
	@$(FIGURES) $(if $(NAME),measure $(NAME),list)

confirm: .venv/.ready-dev
	@$(FIGURES) confirm $(NAME)

release-check: lint
	.venv/bin/ruff check findings/scripts findings/tests
	.venv/bin/mypy findings/scripts
	.venv/bin/pytest -q findings/tests
	$(PY) scripts/full_run.py check; tests=$$?; $(FIGURES) release-check && exit $$tests

coverage: .venv/.ready-dev
	$(PY) scripts/coverage_maps.py make $(SOURCE)

series-form: .venv/.ready-dev
	$(PY) scripts/series_form.py $(NAME)

docs: .venv/.ready-dev
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict
	$(PY) findings/scripts/public_site.py build/site/results
	@echo "made build/site/index.html; with its search: $(PY) -P -m http.server -b 127.0.0.1 -d build/site"

man: .venv/.ready-dev
	$(PY) scripts/man.py build/man/man1
	@echo "made build/man: man -M build/man kteardown"

clean:
	$(MAKE) -s -C agent clean
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
