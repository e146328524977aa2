# cardsync: every task of a developer and of a newcomer. `make help` lists them.
# Recipes quote every path: the project may lie in a folder whose name holds spaces.
SHELL := /bin/sh
PYTHON ?= python3.11
BIN := .venv/bin
# Tests of processes wait more than they work: one more at a time than there are cores.
JOBS ?= 3
NIGHT ?= 7200
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Programs start hundreds of times in the tests: what was compiled once is kept, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run test field test-on check soak nightly mutants explore lint types openapi docs changelog release verify bench screenshots page-faults lock sbom audit clean

help: ## This list
	@grep -E '^[a-z-]+:.*## ' Makefile | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

setup: .venv/.run .venv/.front ## The environment: .venv with cardsync and cardsync-agent

run: .venv/.run .venv/.front ## A demo seller, one whole cycle told in the terminal, then a server until Ctrl-C (data in .data)
	@exec "$(BIN)/cardsync" demo --data-dir .data $(if $(MARKETPLACE),--marketplace)

# A file's tests share their server, so a file stays with one worker; in the soak the files are few and long.
test: .venv/.dev .venv/.front-dev ## The suite of the day, from nothing
	@"$(BIN)/python" -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -m "not night"

field: .venv/.dev ## Files that sellers really have (tests/field), and how many of each kind are right
	@"$(BIN)/python" -m pytest tests/field

# tests/schedule.py says what is left out.
check: JOBS = 2
check: .venv/.dev .venv/.front-dev ## The fast part of the suite, in a minute and a half
	@"$(BIN)/python" -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -m fast

# SOAK_SECONDS=120 runs a slice of it, seeded by the day; SOAK_SEED repeats the slice of another day.
soak: .venv/.dev .venv/.front-dev ## The full counts: many rounds of kill -9, many random cases
	@SOAK=1 "$(BIN)/python" -m pytest -n $(JOBS) --dist worksteal --timeout 0 -m "night or deeper" \
	  --hypothesis-profile soak

# A part ends after NIGHT seconds, the other runs all the same; a line repeats each red test.
nightly: .venv/.dev .venv/.front-dev ## The soak, all features and contracts on each kind of stock server and a cluster, mutants, budgets
	@red=0; \
	SOAK_NIGHT=$(NIGHT) $(MAKE) soak || red=1; \
	for what in pg15 pg18 pgbouncer s3; do SOAK_NIGHT=$(NIGHT) $(MAKE) test-on WHAT=$$what || red=1; done; \
	SOAK_NIGHT=$(NIGHT) "$(BIN)/python" tests/citus_cluster.py run "$(BIN)/python" -m pytest -n $(JOBS) \
	  --dist loadfile -m "not night" tests/features tests/contract/test_citus.py || red=1; \
	$(MAKE) mutants || red=1; \
	$(MAKE) bench AGAINST=HEAD || red=1; \
	exit $$red

# STORIES=1 takes one story of each capability. Without it also what waits for the night runs, with short counts.
test-on: WHAT ?= pg15
test-on: .venv/.dev .venv/.front-dev ## All features and contracts on WHAT=pg15, pg18, pgbouncer or s3
	@.ci/stock $(WHAT) "$(BIN)/python" -m pytest -n $(JOBS) --dist loadfile --timeout 0 \
	  $(if $(STORIES),-m "story and not night",$(if $(filter pg15 pg18,$(WHAT)),tests/kills/test_kills.py)) \
	  tests/features tests/contract

# A sample of the changes: COUNT of them, drawn by the day; it ends after NIGHT seconds.
mutants: .venv/.dev .venv/.mutmut ## Change money, access and locks one place at a time: do tests notice?
	@"$(BIN)/python" tests/mutants.py --count $(or $(COUNT),400) --seconds $(NIGHT)

explore: .venv/.dev ## The properties with random examples, other ones each time
	@"$(BIN)/python" -m pytest -n $(JOBS) --dist worksteal --timeout 0 -m "hypothesis and not night" --hypothesis-profile explore tests/core

lint: .venv/.dev .venv/.front-dev ## Format, lint, style sheets, and the floors of the house
	@"$(BIN)/ruff" format --check . && "$(BIN)/ruff" check . && "$(BIN)/lint-imports" && \
	  "$(BIN)/python" frontend/lint_styles.py

types: .venv/.dev ## Types, strict
	@"$(BIN)/mypy"

openapi: .venv/.run ## Write openapi.json and what is printed from it and the settings anew
	@"$(BIN)/cardsync" openapi > openapi.json
	@"$(BIN)/cardsync" assistants --shapes > shapes.json && mv shapes.json src/cardsync/assistant/shapes.json
	@"$(BIN)/cardsync" assistants > docs/assistants.md
	@"$(BIN)/cardsync" settings > docs/settings.md
	@"$(BIN)/cardsync" troubleshooting > docs/troubleshooting.md
	@"$(BIN)/cardsync" commands > docs/commands.md

docs: .venv/.docs ## The documentation site, into dist/site; a dead link or anchor ends it
	@NO_MKDOCS_2_WARNING=1 PYTHONPATH=.venv/docs "$(BIN)/python" -m mkdocs build --strict

changelog: .venv/.release ## Move the lines of changes/ into CHANGELOG.md, under the version
	@PYTHONPATH=.venv/release "$(BIN)/python" -m towncrier build --yes --version "$$("$(BIN)/python" -c 'import cardsync; print(cardsync.__version__)')"

# KEY_FILE is the key of `cardsync admin release keygen`; CI has its text in RELEASE_KEY.
release: .venv/.front .venv/.docs .venv/.release ## What a release holds, into dist: KEY_FILE=release-key.pem
	@if [ -n "$$RELEASE_KEY" ]; then umask 077; printf '%s\n' "$$RELEASE_KEY" > .venv/release-key.pem; fi; \
	"$(BIN)/python" deploy/release.py build --key-file "$(or $(KEY_FILE),.venv/release-key.pem)"; \
	done=$$?; rm -f .venv/release-key.pem; exit $$done

verify: .venv/.run ## Are the files of dist as they were signed, by PUBLIC_KEY= where one is given?
	@"$(BIN)/python" deploy/release.py verify $(if $(PUBLIC_KEY),--public-key "$(PUBLIC_KEY)")

# AGAINST=HEAD compares with the figures that are committed there.
bench: .venv/.dev ## Measure the budgets, or all figures of PARTS="orders search"; writes bench/RESULTS.md
	@"$(BIN)/python" bench/run_all.py $(if $(AGAINST),--against "$(AGAINST)") $(PARTS)

screenshots: .venv/.dev .venv/.front-dev ## Pictures of the pages for docs/screenshots; needs chromium
	@"$(BIN)/python" tests/screenshots.py

page-faults: .venv/.dev .venv/.front-dev ## What is wrong with each page of URL, for EMAIL and PASSWORD of an owner
	@PYTHONPATH=tests "$(BIN)/python" -m tests.system.page_faults "$(URL)" "$(EMAIL)" "$(PASSWORD)"

lock: ## Pin the dependencies anew (needs pip-tools)
	@cd requirements && for part in run dev docs release mutants node clients; do pip-compile -q --generate-hashes --strip-extras --allow-unsafe \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host -o $$part.txt $$part.in; done

# Neither file is in git; a licence that is not allowed ends it.
sbom: .venv/.run ## Write sbom.json (CycloneDX) and licences.md of what is installed for running
	@"$(BIN)/python" requirements/bill.py sbom > sbom.json
	@"$(BIN)/python" requirements/bill.py licences > licences.md

# It ends with 1 where a pinned package has an advisory, and with 2 where there is nothing to compare with.
audit: .venv/.run ## Compare the lock files with ADVISORIES=FOLDER, a folder of OSV's JSON files
	@"$(BIN)/python" requirements/bill.py audit "$(ADVISORIES)"

clean: ## Remove the environment and the demo's data
	rm -rf .venv .data mutants sbom.json licences.md frontend/node_modules src/cardsync/dashboard/static/vendor

.venv/bin/python:
	@python="$$(command -v "$(PYTHON)" || command -v python3)"; \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "cardsync needs Python 3.11 or newer; set PYTHON=..." >&2; exit 1; }; \
	"$$python" -m venv .venv || { rm -rf .venv; exit 1; }

# What is installed is stamped, so that a second `make` starts at once.
.venv/.run: .venv/bin/python requirements/run.txt pyproject.toml agent/pyproject.toml
	@"$(BIN)/python" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "cardsync needs Python 3.11 or newer; set PYTHON=…")'
	@echo "installing pinned dependencies …"
	@"$(BIN)/python" -m pip install -q --require-hashes -r requirements/run.txt
	@"$(BIN)/python" -m pip install -q --no-deps --no-build-isolation -e . -e ./agent
	@touch .venv/.run

.venv/.dev: .venv/.run requirements/dev.txt
	@echo "installing pinned development tools …"
	@"$(BIN)/python" -m pip install -q --require-hashes -r requirements/dev.txt
	@touch .venv/.dev

# In a folder of its own: with what mutmut brings along, granian would name its processes otherwise.
.venv/.mutmut: .venv/.dev requirements/mutants.txt
	@echo "installing mutmut …"
	@"$(BIN)/python" -m pip install -q --require-hashes --target .venv/mutmut -r requirements/mutants.txt
	@touch .venv/.mutmut

# In a folder of its own: what it needs is nothing of ours.
.venv/.docs: .venv/bin/python requirements/docs.txt
	@echo "installing pinned documentation tools …"
	@"$(BIN)/python" -m pip install -q --require-hashes --target .venv/docs -r requirements/docs.txt
	@touch .venv/.docs

.venv/.release: .venv/.run requirements/release.txt
	@echo "installing pinned release tools …"
	@"$(BIN)/python" -m pip install -q --require-hashes --target .venv/release -r requirements/release.txt
	@touch .venv/.release

# The files that the pages link, and for the tests the checker of accessibility.
.venv/.front: .venv/.run frontend/package-lock.json frontend/vendor.py
	@echo "fetching pinned front-end packages …"
	@"$(BIN)/python" frontend/vendor.py
	@touch .venv/.front

.venv/.front-dev: .venv/.run frontend/package-lock.json frontend/vendor.py
	@echo "fetching pinned front-end packages …"
	@"$(BIN)/python" frontend/vendor.py --dev
	@touch .venv/.front .venv/.front-dev
