# Two commands: `make book` builds the course, `make test` checks everything. `make help` lists the rest.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
BIN := .venv/bin
EDITION ?= learner
PYTEST_WORKERS ?= 2
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help book pdf korean test test-quick test-oracle lint lab demo class corpus hostile tricks sandbox system clean \
        hub hub-packages release-course test-hub

help:  ## list the commands
	@grep -hE '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

# ---- environments: one .venv, filled as far as a command needs; a second run installs nothing
.venv/bin/python:
	@python=$$(tools/find-python.sh) && echo "making .venv with $$python" && $$python -m venv .venv

.venv/.course: EXTRAS := book,grade
.venv/.test: EXTRAS := book,grade,hub,dev
.venv/.oracle: EXTRAS := book,grade,hub,dev,oracle

.venv/.hub: EXTRAS := book,grade,hub

.venv/.course .venv/.hub .venv/.test .venv/.oracle: pyproject.toml constraints.txt | .venv/bin/python
	@echo "installing tilelab[$(EXTRAS)] into .venv (pinned in constraints.txt)"
	@$(BIN)/pip install -qq -c constraints.txt -e '.[$(EXTRAS)]' || $(BIN)/pip install -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@

# ---- reading
book: .venv/.course  ## execute and build the book; EDITION=instructor adds the worked solutions
	@$(BIN)/python tools/build_book.py --edition $(EDITION)

pdf: book  ## print the book into _build/tilelab.pdf, by Chromium
	@$(BIN)/python tools/print_book.py

korean: .venv/.course  ## extract all strings, and build the Korean edition from an empty catalogue
	@$(BIN)/python tools/translate.py check

lab: .venv/.course  ## open JupyterLab on the course
	@$(BIN)/jupyter lab --ip 127.0.0.1 $(if $(filter 0,$(shell id -u)),--allow-root) notebooks

# ---- grading: learners' code runs in a sandbox, which is a Debian package
sandbox: .venv/.course
	@tools/system-packages.sh grade

demo: sandbox  ## release, submit and grade a class of three, and print its table
	@rm -rf _build/demo
	@$(BIN)/python autograder/demo/run.py --keep _build/demo

class: sandbox  ## grade a generated class of 24 over all problems, and compare with what was designed
	@$(BIN)/python autograder/demo/many.py

corpus: sandbox  ## judge what learners really hand in, and print what was designed and what came out
	@$(BIN)/python autograder/corpora/run.py

hostile: sandbox  ## grade every broken and hostile submission and try every escape, as root as an ordinary user too
	@$(BIN)/python autograder/hostile/run.py

tricks: sandbox  ## try every known trick against timed judging (on a GPU; what a CPU can run elsewhere)
	@$(BIN)/python autograder/tricks/try_all.py --device $$($(BIN)/python -c "from tilelab.cudacpp.device import gpu_missing; print('emulated' if gpu_missing() else 0)")

# ---- a class on a JupyterHub
hub-packages: .venv/.hub
	@tools/system-packages.sh hub
	@$(MAKE) -s --no-print-directory .venv/node/.installed

.venv/node/.installed: autograder/hub/package-lock.json autograder/hub/package.json
	@echo "installing configurable-http-proxy into .venv/node (pinned in $<)"
	@mkdir -p $(@D) && cp $^ $(@D) && cd $(@D) && npm ci --no-fund --no-audit --loglevel=error >/dev/null
	@touch $@

hub: hub-packages  ## a JupyterHub with the course on it, on this machine alone; Ctrl-C ends it; COURSE=… names another course.toml
	@$(BIN)/python autograder/hub/demo.py --course $(or $(COURSE),autograder/course.toml)

hub-shell: hub-packages  ## a shell as the account that grades on the hub, in its home; COURSE=… names another course.toml
	@$(BIN)/python autograder/hub/demo.py --course $(or $(COURSE),autograder/course.toml) --shell

release-course: hub-packages  ## hand out chapters and assignments, or what changed; COURSE=… names another course.toml
	@$(BIN)/python autograder/hub/release_course.py --course $(or $(COURSE),autograder/course.toml)

test-hub: .venv/.test system  ## a whole course on a hub, in a browser: from release to points
	@$(BIN)/pytest -n 0 tests/hub/test_cycle.py

# ---- checking
system: .venv/.test
	@tools/system-packages.sh test
	@$(MAKE) -s --no-print-directory .venv/node/.installed

lint: .venv/.test
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

test: .venv/.test system lint  ## everything that needs no GPU, browser tests included
	@$(BIN)/python tools/build_book.py
	@$(BIN)/python tools/translate.py check
	@$(BIN)/pytest -n $(PYTEST_WORKERS) --dist loadgroup

test-quick: .venv/.test  ## under a minute, for the working hour
	@$(BIN)/pytest -n $(PYTEST_WORKERS) --dist loadgroup -m "not slow and not browser"

test-oracle: .venv/.oracle  ## the layout algebra against CuTe C++ (compiled here), pycute, tensor-layouts
	@$(BIN)/pytest -m oracle tests/layout

clean:  ## remove what was built, keep .venv
	@rm -rf _build
