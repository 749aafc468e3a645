# `make` alone lists the targets.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || echo python3)
ENV := . .transom/env &&
CODE := jobs dags plugins tools docker tests
# An idle worker takes the next test; one worker runs all tests of a group, in order.
WORKERS ?= 3
PYTEST := pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help setup docs lock lint typing test test-full test-quick test-all test-unit test-spark test-dags test-e2e three-ways attack histories airflow spark cluster images demo bench reproduce-multigranular reproduce-widening reproduce-frames reproduce-persistence reproduce-countmin schema format clean

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 28

setup: ## install everything that transom needs into the checkout (again: seconds)
	@$(PYTHON) tools/setup.py

docs: setup ## build the documentation site, .transom/site/index.html
	@$(ENV) PYTHONPATH=tools:"$$PYTHONPATH" python -m site_tools.drawings docs/drawings
	@$(ENV) NO_MKDOCS_2_WARNING=1 mkdocs build -q --strict
	@echo "docs: .transom/site/index.html; with search: python -m http.server -d .transom/site"

COMPILE := uv pip compile -q --universal --generate-hashes --python-version 3.11 --no-emit-index-url --no-header
lock: setup ## regenerate tools/requirements.txt from tools/requirements.in, and the image's lock files in docker/
	@$(ENV) $(COMPILE) tools/requirements.in -o tools/requirements.txt
	@$(ENV) $(COMPILE) pyproject.toml docker/requirements.in --extra airflow -c tools/requirements.txt -o docker/requirements.txt
	@$(ENV) echo hatchling | $(COMPILE) - -c tools/requirements.txt -o docker/build.txt

lint: setup ## check rules, format, the direction of imports, the image, and the prose of pages, docstrings and messages
	@$(ENV) ruff check $(CODE) && ruff format --check $(CODE) && lint-imports --no-logo && \
	  hadolint docker/Dockerfile && PYTHONPATH=tools:"$$PYTHONPATH" python -m prose_lint

format: setup ## format the code, and apply ruff's automatic fixes
	@$(ENV) ruff check -q --fix $(CODE); ruff format -q $(CODE)

typing: setup ## check types with mypy
	@$(ENV) mypy

test-unit: setup ## quick tests without a JVM (under a minute)
	@$(ENV) $(PYTEST) --ignore tests/e2e --ignore tests/dags --hypothesis-profile=unit -m "not spark and not full and not long"

test-spark: setup ## quick tests of stages and of equal results, on Spark and Delta
	@$(ENV) $(PYTEST) --ignore tests/e2e -m "spark and not full and not long"

test-dags: setup ## tests of the DAGs, without a server
	@$(ENV) pytest tests/dags

test-e2e: setup ## quick tests with a real Airflow
	@$(ENV) pytest tests/e2e

test-quick: setup
	@$(ENV) $(PYTEST)

test-all: setup
	@$(ENV) $(PYTEST) -m "not long" --hypothesis-profile=full --durations=40

test: ## linters, types and quick tests, in parallel (ten minutes)
	@$(call verdict,test-quick)
	@echo "make test: omitted: kills on Spark, random lakes, clusters, pages in a browser (make test-full)"

test-full: ## linters, types and all tests except the long targets (forty minutes)
	@$(call verdict,test-all)

# Runs linters, types and a target with tests in parallel, and prints whether all passed.
define verdict
if $(MAKE) --no-print-directory -j3 lint typing $(1); then echo "make $@: passed"; \
  else echo "make $@: FAILED"; exit 1; fi
endef

three-ways: setup ## run 84 hours by trigger, hourly and by backfill, and compare the tables (one to two hours)
	@$(ENV) pytest tests/long/test_three_ways.py -m long -s

attack: setup ## run a day of a real log, kill drivers of every stage, and compare the tables (an hour)
	@$(ENV) pytest tests/long/test_attack.py -m long -s

# Tests of `make histories`: any randomised test, by the name that a failure prints.
TEST ?= tests/promise/test_drawn_histories.py tests/promise/test_promise.py tests/engine/test_chains.py
PROFILE ?= full
histories: setup ## randomised tests with a new or a given seed (TRANSOM_SEED, TRANSOM_LAKES=20, TEST, PROFILE)
	@$(ENV) export TRANSOM_LAKES=$${TRANSOM_LAKES:-20} TRANSOM_SEED=$${TRANSOM_SEED:-$$(date +%s)} && \
	  echo "TRANSOM_LAKES=$$TRANSOM_LAKES TRANSOM_SEED=$$TRANSOM_SEED" && \
	  $(PYTEST) $(TEST) -m "" --hypothesis-profile=$(PROFILE)

airflow: setup ## run Airflow on the streams of this checkout, until Ctrl-C (PORT=8080)
	@$(ENV) python tools/airflow_server.py

spark: setup ## run a Spark Connect server on loopback, so that jobs need not start Spark, until Ctrl-C (PORT=15002)
	@$(ENV) python tools/spark_server.py

cluster: setup ## run a Spark master and two workers on loopback, until Ctrl-C
	@$(ENV) python tools/cluster.py

images: setup ## build the container image, and run a day in it while each service is killed once (20 minutes; needs root)
	@$(ENV) PYTHONPATH=tools:"$$PYTHONPATH" python -m images

demo: setup ## process real logs with a real Airflow, and show the findings
	@$(ENV) PYTHONPATH=tools:"$$PYTHONPATH" python -m demo

bench: setup ## compare transom with Spark's own operators and DuckDB, 5,000,000 lines (two and a half hours; BENCH="hour --repetitions 1")
	@$(ENV) PYTHONPATH=tools:"$$PYTHONPATH" python -m bench $(BENCH)

reproduce-multigranular: setup ## reproduce figures 5 to 8 of the paper on multi-granular windows (three minutes)
	@$(ENV) PYTHONPATH=tools:"$$PYTHONPATH" python -m reproduce.multigranular

reproduce-widening: setup ## reproduce the case study of the paper on widening windows (two minutes)
	@$(ENV) PYTHONPATH=tools:"$$PYTHONPATH" python -m reproduce.widening

reproduce-frames: setup ## reproduce the paper on frames with freeway data (a quarter of an hour)
	@$(ENV) PYTHONPATH=tools:"$$PYTHONPATH" python -m reproduce.frames

reproduce-persistence: setup ## reproduce rates and memory of the paper on persistent items (four minutes)
	@$(ENV) PYTHONPATH=tools:"$$PYTHONPATH" python -m reproduce.persistence

reproduce-countmin: setup ## reproduce errors of the paper on windowed Count-Min sketches (half an hour)
	@$(ENV) PYTHONPATH=tools:"$$PYTHONPATH" python -m reproduce.countmin

schema: setup ## regenerate schemas/stream.schema.json from the models
	@$(ENV) python -m transom.stream_schema schemas/stream.schema.json

clean: ## remove everything that set-up and runs created, except the lake in .transom/lake
	test ! -d .transom || find .transom -mindepth 1 -maxdepth 1 ! -name lake -exec rm -rf {} +
	rm -rf .venv .mypy_cache .import_linter_cache .ruff_cache .pytest_cache .hypothesis
