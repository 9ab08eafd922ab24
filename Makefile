# `make run` and `make test` need Python 3.11 or newer, make and PyPI, and bring the rest.
# Another interpreter: make PYTHON=python3.12 test. Some tests only: make test PYTEST_ARGS=tests/house
PYTHON ?= python3
PYTEST_ARGS ?=
BENCH_ARGS ?=
FUZZ_ARGS ?=
GUARD_ARGS ?=
SITE_ARGS ?=
KILLS_ARGS ?=
REHEARSAL_ARGS ?=
CLIENTS ?=
VECTORS_ARGS ?=
CODECS ?=
# What `make preview` reads: a source tree of Kafka, or REV: of git in one.
SOURCE ?=
PREVIEW_ARGS ?=
OUT ?= out/demo
# What `make try-wheel` tries the wheel on.
PYTHONS ?= $(PYTHON)

.DEFAULT_GOAL := help
.PHONY: help run fast test long cluster search kafka conform-mutants conform-others trial rehearse faults vectors codecs pyspark-versions lint classes wheel try-wheel release-rehearsal browser site preview bench bench-pipeline bench-driver fuzz guard lock clean environment

# A run of the tests ends after 20 minutes, wherever it is; FLEXWIRE_TEST_MINUTES=40 make test gives it
# longer. What takes longer by itself says so below, or in tests/ending.py.
# One process more than there are processors, because tests wait for servers and for Java; at most four. Each
# gets the tests of whole files, and one or two of them those that take a session of Spark (tests/conftest.py).
PROCESSES ?= $(shell $(PYTHON) -c 'import os; print(min(4, 1 + (os.cpu_count() or 1)))')
PYTEST = .venv/bin/pytest -n $(PROCESSES) --dist loadfile
# Markers of pyproject.toml whose tests take most of the time.
LONG = spark or guard or long or cluster or kafka or browser or slow
# What holds an analysis, of captures and of logs, its answers and views on each version of PySpark.
OF_SPARK = tests/spark/test_analyze.py tests/spark/test_audit.py tests/spark/test_cluster.py tests/spark/test_commit.py \
  tests/spark/test_connect.py tests/spark/test_delta_connector.py tests/spark/test_external_tables.py tests/spark/test_iceberg_connector.py tests/spark/test_equality.py tests/spark/test_faults.py \
  tests/spark/test_kafka_capture.py tests/spark/test_kafka_capture_elsewhere.py \
  tests/spark/test_kafka_log.py tests/spark/test_kafka_log_connect.py \
  tests/spark/test_kafka_log_stream.py tests/spark/test_record_schema.py tests/spark/test_session.py \
  tests/spark/functions/test_connect.py tests/spark/functions/test_on_spark.py \
  tests/spark/test_answers_asked.py tests/spark/test_delta_logs.py tests/spark/test_group_answers.py \
  tests/spark/test_log_analysis.py tests/spark/test_reading.py tests/spark/test_traffic_answers.py \
  tests/spark/internal_topics/test_cluster.py tests/spark/internal_topics/test_views.py
# Tests start a hundred processes, and without these files each would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

help:
	@echo "make run    the main job on an embedded cluster: clients, tap, capture, Spark, report"
	@echo "make fast   after each change, in one to three minutes: lint, types, import directions, and the quick tests"
	@echo "make test   the same with Spark, guard pages and random search: six minutes"
	@echo "make long   what takes longest of the tests, which CI runs after make test: half an hour"
	@echo "make cluster  whole analyses on a standalone cluster, by spark-submit and by Spark Connect, and with"
	@echo "            the environment shipped as docs/cluster.md says: a quarter of an hour"
	@echo "make search  the random searches of the tests, ten times as long as make test has them"
	@echo "make kafka  logs, internal topics, request logs, the tap and call beside what real brokers of 3.9, 4.0"
	@echo "            and 4.4 say, and every API that their clients reach, from Maven Central, which takes Maven"
	@echo "            (mvn), and a KDC of Debian's packages (apt-get): half an hour; make kafka"
	@echo "            PYTEST_ARGS='-k 4.4.0' is one release"
	@echo "make conform-mutants  thirty deviations, planted by a seed before brokers of 3.9, 4.0 and 4.4: flexwire"
	@echo "            conform finds each in its case; SEED=8 draws others: five minutes"
	@echo "make conform-others  brokers of other projects beside Apache Kafka, for docs/conformance.md: two minutes;"
	@echo "            BROKERS=kfake: only that one"
	@echo "make trial  the audit on trial: what it foresees of clients, Kafka's and others', old and new, and what"
	@echo "            brokers of 4.0 and 4.4 then do; takes Maven, Go and Node: ten minutes. CLIENTS=sarama: only those;"
	@echo "            CLIENTS=groups: only groups that move to the consumer protocol: eight minutes"
	@echo "make rehearse  the trial's clients on 3.9.2 behind a tap that rehearses 4.0 and 4.4, compared with make trial"
	@echo "make faults  eight client libraries behind a tap that breaks their requests, for docs/faults.md"
	@echo "make vectors  test vectors of Kafka's protocol, made by Kafka's own Java, as a directory and a wheel in"
	@echo "            out/vectors: a minute; takes Maven"
	@echo "make codecs  codecs in Java, Go, Rust, JavaScript and Python, tested with these vectors, for docs/codecs.md: ten minutes"
	@echo "make pyspark-versions  analyze on the oldest PySpark that it takes, and on the newest"
	@echo "make wheel  dist/*.whl with its kernels compiled, twice, to compare the bytes: a minute"
	@echo "make try-wheel  the tests of all that runs on kernels on a wheel, guard pages included, on the"
	@echo "            interpreters of PYTHONS: half an hour each"
	@echo "make release-rehearsal  all of a release but its push, from what is committed, in empty environments"
	@echo "            without a network, for docs/releasing.md: three minutes"
	@echo "make bench  flexwire beside its rivals, pinned: messages per second and ratios"
	@echo "make bench-pipeline  flexwire analyze on large captures: CPU, memory and disk, beside tshark"
	@echo "make bench-driver  what a driver takes of a million files and 20,000 tasks, for docs/scale.md"
	@echo "make fuzz   any bytes against fourteen laws, a minute each: messages, JSON, records, captures, specs"
	@echo "make guard  a million damaged inputs for each kernel, against protected pages: ten minutes; damaged"
	@echo "            captures, read in all ways; analyses that are killed at random moments: five minutes;"
	@echo "            secrets in all fields, searched for"
	@echo "make browser  the report and the guide in the machine's own browser, looked at by axe: a minute"
	@echo "make site   the documentation as a web site that needs no network, in out/site: a minute"
	@echo "make preview SOURCE=../kafka  what a source tree of Kafka brings since the newest release, and what"
	@echo "            flexwire would misread of it"
	@echo "make lint   the same without the tests"
	@echo "make lock   pin the dependencies anew, at the newest versions pyproject.toml allows"
	@echo "make clean  remove what the other targets wrote, except .venv"

run: environment
	.venv/bin/flexwire demo --out $(OUT)

fast: environment
	@$(MAKE) --no-print-directory lint
	$(PYTEST) -m "not ($(LONG))" $(PYTEST_ARGS)

test: environment
	@$(MAKE) --no-print-directory -j 2 lint classes
	$(PYTEST) $(PYTEST_ARGS)

# What pyproject.toml has `make test` leave out.
long: environment
	$(PYTEST) -m long $(PYTEST_ARGS)

cluster: environment
	.venv/bin/pytest -n 0 -m cluster $(PYTEST_ARGS) tests/spark tests/docs

# Searches at random take as many examples by themselves as have found anything (tests/searching.py).
search: environment
	FLEXWIRE_SEARCH=10 FLEXWIRE_TEST_MINUTES=180 $(PYTEST) -m "not (spark or guard or cluster or kafka or browser)" $(PYTEST_ARGS)
	FLEXWIRE_SEARCH=10 FLEXWIRE_TEST_MINUTES=180 .venv/bin/pytest -n 0 -m spark $(PYTEST_ARGS) tests/spark/internal_topics/test_replays.py \
	  tests/spark/test_latency_by_day.py tests/spark/test_day_sums_random.py

# What it brings from Maven Central is kept in .build/jars, and of Debian's packages in .build/debian;
# where those cannot be reached it fails.
kafka: environment
	.venv/bin/pytest -n 0 -m kafka $(PYTEST_ARGS) tests/kafka

conform-mutants: environment
	FLEXWIRE_SEED=$(or $(SEED),7) .venv/bin/pytest -n 0 -m kafka $(PYTEST_ARGS) tests/kafka/test_conformance_mutants.py

# It writes tests/conformance/others.json.
conform-others: environment
	.venv/bin/python -m tools.other_brokers $(BROKERS)

# It writes docs/audit.md, docs/consumer-protocol.md, and results.jsonl and groups.jsonl in tests/kafka/trial, unless
# only some clients or groups are asked for.
trial: environment
	.venv/bin/python -m tests.kafka.trial $(CLIENTS)

# It compares with tests/kafka/trial/results.jsonl, and writes nothing.
rehearse: environment
	.venv/bin/python -m tests.kafka.trial.rehearsing $(CLIENTS)

faults: environment
	.venv/bin/python -m tests.kafka.trial.breaking $(CLIENTS)

# It compares with tests/vectors/package/manifest.json; VECTORS_ARGS=--keep writes that anew.
vectors: environment
	.venv/bin/python -m tools.vectors_package out/vectors $(VECTORS_ARGS)

# It writes docs/codecs.md and tests/vectors/codecs.json. CODECS=go: only that one.
codecs: environment
	.venv/bin/python -m tools.vectors_codecs $(CODECS)

# The newest is what requirements.lock pins. PySpark 4.0 itself leaves sockets open.
pyspark-versions: export FLEXWIRE_TEST_MINUTES = 120
pyspark-versions: environment
	.venv/bin/python -m tools.oldest_pyspark
	.build/oldest-pyspark/bin/python -m pytest -n 0 -m "" -W ignore::ResourceWarning \
	  -W ignore::pytest.PytestUnraisableExceptionWarning $(PYTEST_ARGS) $(OF_SPARK)
	.venv/bin/pytest -n 0 -m "" $(PYTEST_ARGS) $(OF_SPARK)

# `flexwire warmup` does this too, unless it is done.
classes: environment
	.venv/bin/python -c 'from flexwire.spark.archive import make_archive; from flexwire.spark.settings import SMALL_JAVA; make_archive(SMALL_JAVA)'

# For the machine's own Python. `pip wheel` alone would do it: what make adds is the proof.
wheel: environment
	.venv/bin/python -m tools.package.wheel

try-wheel: wheel
	.venv/bin/python -m tools.try_wheel --python $(PYTHONS) --guard

# It brings its packages once, into .build/wheelhouse. REHEARSAL_ARGS=--no-site leaves the site out.
release-rehearsal: environment
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement tools/site/requirements.lock
	.venv/bin/python -m tools.release.rehearsal $(REHEARSAL_ARGS)

lint: environment
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/mypy
	.venv/bin/lint-imports
	PATH="$(CURDIR)/.venv/bin:$$PATH" cython-lint src/flexwire/kernels

environment:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "flexwire needs Python 3.11 or newer, and $(PYTHON) is %d.%d; name another: make PYTHON=python3.12" % sys.version_info[:2])'
	@$(PYTHON) tools/environment.py

bench: environment
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement benchmarks/requirements.lock
	.venv/bin/python benchmarks/messages.py $(BENCH_ARGS)
	.venv/bin/python benchmarks/records.py $(BENCH_ARGS)

bench-pipeline: environment
	.venv/bin/python benchmarks/pipeline.py $(BENCH_ARGS)

bench-driver: environment
	.venv/bin/python benchmarks/driver.py $(BENCH_ARGS)

fuzz: environment
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement fuzz/requirements.lock
	.venv/bin/python -m fuzz $(FUZZ_ARGS)

# The package's own requirement, a driver of browsers, is not needed.
browser: environment
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --requirement tests/browser/requirements.lock
	.venv/bin/pytest -n 0 -m browser $(PYTEST_ARGS) tests/browser

# What it installs agrees with requirements.lock, which `make lock` keeps.
site: environment
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement tools/site/requirements.lock
	.venv/bin/python -m tools.site $(SITE_ARGS)

preview: environment
	.venv/bin/python -m tools.preview $(PREVIEW_ARGS) $(SOURCE)

guard: environment
	.venv/bin/python -m tests.kernels.planted
	.venv/bin/python -m fuzz.guard $(GUARD_ARGS)
	.venv/bin/python -m fuzz.watched
	.venv/bin/python -m fuzz.damaged
	.venv/bin/python -m fuzz.kills $(KILLS_ARGS)
	.venv/bin/python -m fuzz.leaks

lock: environment
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --extra dev \
	  --generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-find-links \
	  --output-file requirements.lock pyproject.toml
	.venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --constraint requirements.lock \
	  --generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-find-links \
	  --output-file tools/site/requirements.lock tools/site/requirements.in
	echo ziglang | .venv/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 \
	  --generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-find-links \
	  --output-file tools/package/zig.lock -

clean:
	rm -rf out .build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .benchmarks
	find src tests tools fuzz benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
