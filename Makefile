# The front door. Needs Python 3.11 and make; everything else is installed into .venv.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
PIP    := PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --disable-pip-version-check --quiet
JOBS   ?= 2
DEMO   := demo-output

.DEFAULT_GOAL := help
.PHONY: help install demo test test-full check format bench serve docs regress clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

install: $(STAMP) ## create .venv with everything in it

# torch comes first and pinned, so that no looser range is ever resolved for it.
$(STAMP): pyproject.toml client/pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) "$$(grep '^torch==' constraints.txt)"
	$(PIP) -e client -e '.[service,runner,docs,dev]'
	touch $@

demo: $(STAMP) ## plan, explain and execute the two example jobs
	mkdir -p $(DEMO)
	$(MAKE) --no-print-directory demo-case MODEL=llama3-70b CLUSTER=hybrid-64
	$(MAKE) --no-print-directory demo-case MODEL=qwen3-235b-a22b CLUSTER=h100-a800-h20-1024

.PHONY: demo-case
demo-case:
	$(BIN)/haplan plan $(MODEL) $(CLUSTER) --global-batch-size 1024 --sequence-length 4096 -o $(DEMO)/$(MODEL).json
	$(BIN)/haplan explain $(DEMO)/$(MODEL).json
	$(BIN)/haplan validate $(DEMO)/$(MODEL).json

test: $(STAMP) ## the tests, without the slow ones
	$(BIN)/python -m pytest -n $(JOBS) -m "not slow"

test-full: $(STAMP) ## all tests, with more random examples
	HYPOTHESIS_PROFILE=full $(BIN)/python -m pytest -n $(JOBS)

check: $(STAMP) ## lint, format, types, import contracts, size budgets
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/project

format: $(STAMP) ## let ruff repair what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## time the planner on the frozen problems, and the cost model
	$(BIN)/python benchmarks/bench.py
	$(BIN)/python -m pytest benchmarks -m "slow or not slow" --benchmark-only

CASES ?= $(wildcard tests/accuracy/cases/*.jsonl)

.PHONY: accuracy
accuracy: $(STAMP) ## errors on measured runs (CASES=...), as shipped and on runs held out
	$(BIN)/haplan accuracy $(CASES)
	$(BIN)/python benchmarks/accuracy_protocols.py $(CASES)

FINDINGS ?= accuracy-findings.json

.PHONY: accuracy-docs
accuracy-docs: $(STAMP) ## write docs/accuracy.md anew: errors on runs held out, what each term is worth
	$(BIN)/python benchmarks/accuracy_protocols.py $(CASES) -o $(FINDINGS)
	$(BIN)/python benchmarks/accuracy_ablation.py $(CASES) --findings $(FINDINGS) -o $(FINDINGS:.json=.ablation.json)
	$(BIN)/python benchmarks/accuracy_report.py $(FINDINGS) --ablation $(FINDINGS:.json=.ablation.json)

serve: $(STAMP) ## the HTTP service on this machine
	$(BIN)/haplan serve

docs: $(STAMP) ## check that the documentation is true
	$(BIN)/python -m pytest -q tests/project/test_docs.py

regress: $(STAMP) ## re-plan the bundled suite and compare with its baseline
	$(BIN)/haplan regress service/regress_suite.yaml --baseline service/regress_baseline.json

clean: ## remove what the other targets made
	rm -rf $(DEMO) .pytest_cache .ruff_cache .hypothesis .import_linter_cache
