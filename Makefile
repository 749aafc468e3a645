# `make` alone lists the targets.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || echo python3)
ENV := . .transom/env &&
CODE := jobs dags plugins tools tests
# A worker takes the next test when it is free; tests of one group stay on one worker, in order.
WORKERS ?= 3
PYTEST := pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup docs lock lint typing test test-full test-quick test-all test-unit test-spark test-dags test-e2e three-ways attack histories reference airflow cluster demo bench reproduce-multigranular reproduce-widening reproduce-frames reproduce-persistence reproduce-countmin schema format clean

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 28

setup: ## bring everything that transom needs into the checkout (again: seconds)
	@$(PYTHON) tools/setup.py

docs: setup ## build the documentation site, .transom/site/index.html
	@$(ENV) python tools/site_tools/drawings.py docs/drawings
	@$(ENV) NO_MKDOCS_2_WARNING=1 mkdocs build -q --strict

lock: setup ## write tools/requirements.txt anew from tools/requirements.in
	@$(ENV) uv pip compile -q --universal --generate-hashes --python-version 3.11 --no-emit-index-url \
	  --no-header tools/requirements.in -o tools/requirements.txt

lint: setup ## rules, format, and which way imports point
	@$(ENV) ruff check $(CODE) && ruff format --check $(CODE) && lint-imports --no-logo

format: setup ## ruff: mend what can be mended
	@$(ENV) ruff check -q --fix $(CODE); ruff format -q $(CODE)

typing: setup ## mypy
	@$(ENV) mypy

test-unit: setup ## quick tests without a JVM (under a minute)
	@$(ENV) $(PYTEST) --ignore tests/e2e --ignore tests/dags --hypothesis-profile=unit -m "not spark and not full and not long"

test-spark: setup ## quick tests of the stages and of the promise, on Spark and Delta
	@$(ENV) $(PYTEST) --ignore tests/e2e -m "spark and not full and not long"

test-dags: setup ## tests of the DAGs, without a server
	@$(ENV) pytest tests/dags

test-e2e: setup ## quick tests with a real Airflow
	@$(ENV) pytest tests/e2e

test-quick: setup
	@$(ENV) $(PYTEST)

test-all: setup
	@$(ENV) $(PYTEST) -m "not long" --hypothesis-profile=full --durations=40

test: ## linters, types and quick tests, side by side (ten minutes)
	@$(call verdict,test-quick)

test-full: ## linters, types and every test but the long targets (forty minutes)
	@$(call verdict,test-all)

# Runs linters, types and a target with tests side by side, and says at the end how that went.
define verdict
if $(MAKE) --no-print-directory -j3 lint typing $(1); then echo "make $@: passed"; \
  else echo "make $@: FAILED"; exit 1; fi
endef

three-ways: setup ## 84 hours triggered, hourly and by backfill: the same tables (an hour or two)
	@$(ENV) pytest tests/long/test_three_ways.py -m long -s

attack: setup ## a day of a real log, drivers of every stage killed at their work: the same tables (an hour)
	@$(ENV) pytest tests/long/test_attack.py -m long -s

# What `make histories` runs: any randomised test, by the name that its failure prints.
TEST ?= tests/promise/test_drawn_histories.py tests/promise/test_promise.py tests/engine/test_chains.py
PROFILE ?= full
histories: setup ## randomised tests with another seed, or one again (TRANSOM_SEED, TRANSOM_LAKES=20, TEST, PROFILE)
	@$(ENV) export TRANSOM_LAKES=$${TRANSOM_LAKES:-20} TRANSOM_SEED=$${TRANSOM_SEED:-$$(date +%s)} && \
	  echo "TRANSOM_LAKES=$$TRANSOM_LAKES TRANSOM_SEED=$$TRANSOM_SEED" && \
	  $(PYTEST) $(TEST) -m "" --hypothesis-profile=$(PROFILE)

reference: setup ## the lakes of an earlier commit beside those of this one, row by row (half an hour)
	@$(ENV) PYTHONPATH=tools:"$$PYTHONPATH" python -m reference

airflow: setup ## Airflow on the streams of this checkout, until Ctrl-C (PORT=8080)
	@$(ENV) python tools/airflow_server.py

cluster: setup ## a Spark master and two workers on loopback, until Ctrl-C
	@$(ENV) python tools/cluster.py

demo: setup ## real logs through a real Airflow, and what was found
	@$(ENV) PYTHONPATH=tools:"$$PYTHONPATH" python -m demo

bench: setup ## transom beside Spark's own operators and DuckDB, 5,000,000 lines (two hours; BENCH="hour --repetitions 1")
	@$(ENV) PYTHONPATH=tools:"$$PYTHONPATH" python -m bench $(BENCH)

reproduce-multigranular: setup ## figures 5 to 8 of the paper on multi-granular windows, tables and plots (three minutes)
	@$(ENV) PYTHONPATH=tools:"$$PYTHONPATH" python -m reproduce.multigranular

reproduce-widening: setup ## the case study of the paper on widening windows, tables and plots (two minutes)
	@$(ENV) PYTHONPATH=tools:"$$PYTHONPATH" python -m reproduce.widening

reproduce-frames: setup ## frames on freeway data as in the paper, tables and plots (a quarter of an hour)
	@$(ENV) PYTHONPATH=tools:"$$PYTHONPATH" python -m reproduce.frames

reproduce-persistence: setup ## rates and memory of persistent items as in the paper, tables and plots (five minutes)
	@$(ENV) PYTHONPATH=tools:"$$PYTHONPATH" python -m reproduce.persistence

reproduce-countmin: setup ## errors of windowed Count-Min sketches as in the paper, tables and plots (half an hour)
	@$(ENV) PYTHONPATH=tools:"$$PYTHONPATH" python -m reproduce.countmin

schema: setup ## write schemas/stream.schema.json anew from the models
	@$(ENV) python -m transom.stream_schema schemas/stream.schema.json

clean: ## remove what set-up and runs have made, but for the lake in .transom/lake
	test ! -d .transom || find .transom -mindepth 1 -maxdepth 1 ! -name lake -exec rm -rf {} +
	rm -rf .venv .mypy_cache .import_linter_cache .ruff_cache .pytest_cache .hypothesis
