# Two commands matter: `make demo` and `make test`. The environment is built once and rebuilt only
# when the project's own requirements change.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
ENV := .venv
RUN := $(ENV)/bin/
STAMP := $(ENV)/.installed
export OPENBLAS_NUM_THREADS ?= 2
# Workers take the cores: more threads would only wait for each other. A third one fills the time that browsers and Spark wait.
test quick engine dist minimum: export OPENBLAS_NUM_THREADS = 1
# Bytecode is kept, whatever the machine says: workers and the hundreds of processes of tests would all compile covey anew.
test quick engine dist minimum: export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test quick engine dist minimum check bench bench-nist bench-peers figures audit trust fuzz attacks docs docs-look tour clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "covey needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(ENV)
	$(RUN)python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	# pycanon, an outside judge in the tests, asks for an older numpy than it needs.
	$(RUN)python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt pycanon
	touch $(STAMP)

# The demonstration needs little: the environment of the tests if there is one, otherwise a small one of its own.
DEMO := $(if $(wildcard $(STAMP)),$(ENV),build/demo-env)
build/demo-env/.installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "covey needs Python 3.11 or newer")'
	$(PYTHON) -m venv build/demo-env
	build/demo-env/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[cli]'
	touch $@

demo: $(DEMO)/.installed
	$(DEMO)/bin/python -m covey.desk.cli demo --out build/demo --force

check: $(STAMP)
	$(RUN)ruff format --check .
	$(RUN)ruff check .
	$(RUN)mypy
	$(RUN)lint-imports
	$(RUN)python -m trust.readability --check

test: check
	$(RUN)pytest -n 3

# A contributor's answer in under a minute on two idle cores: what the code says, and one test file or two from every room.
QUICK := tests/engine/codes tests/engine/draw tests/paper/test_groups.py tests/engine/noise/test_sensitivity.py \
	tests/paper/test_bounds.py tests/engine/test_budget.py tests/engine/test_gate.py \
	tests/tables/test_codec.py tests/tables/test_csvfile.py tests/tables/test_fields.py tests/tables/test_rules.py \
	tests/tables/test_schema.py tests/release/test_bundle.py tests/desk/web/test_security.py \
	tests/test_figures.py tests/test_html.py tests/engine/test_progress.py
quick: $(STAMP)
	$(RUN)ruff check .
	$(RUN)pytest -n 2 $(QUICK)

# The engine's tests with the engine's own dependencies alone: no frames, no files, no screens are installed beside it.
ENGINE := build/engine-env
engine: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(ENGINE)
	$(ENGINE)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . \
		pytest pytest-xdist hypothesis mpmath dp-accounting array-api-compat array-api-strict opendp
	$(ENGINE)/bin/python -m pytest -n 2 tests/engine

# What goes to a package index, and whether it works: the quick tests from the unpacked source distribution, the demonstration
# from the wheel in a clean environment.
DIST := build/dist-env
dist: $(STAMP)
	rm -rf build/dist build/unpacked
	$(PYTHON) -m venv --clear $(DIST)
	$(DIST)/bin/python -m pip install --quiet --disable-pip-version-check build twine
	$(DIST)/bin/python -m build --outdir build/dist .
	$(DIST)/bin/python -m twine check --strict build/dist/*
	mkdir -p build/unpacked
	tar -xzf build/dist/covey-*.tar.gz -C build/unpacked --strip-components=1
	cd build/unpacked && PYTHONPATH=src ../../$(RUN)python -m pytest -n 2 $(QUICK)
	$(PYTHON) -m venv --clear build/wheel-env
	build/wheel-env/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt "$$(echo build/dist/covey-*.whl)[cli]"
	build/wheel-env/bin/python -m covey.desk.cli demo --out build/wheel-demo --force

# The tests with the oldest versions that pyproject.toml allows, in an environment of their own. Browser tests are left out:
# what they need besides covey is the newest anyway. Spark 4.0 leaves its own sockets to the garbage collector.
MINIMUM := build/minimum-env
minimum: pyproject.toml constraints.txt
	$(PYTHON) -m venv --clear $(MINIMUM)
	$(PYTHON) -m trust.minimum > build/minimum.txt
	$(MINIMUM)/bin/python -m pip install --quiet --disable-pip-version-check -c build/minimum.txt -e '.[test]'
	$(MINIMUM)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps pycanon
	$(MINIMUM)/bin/python -m pytest -n 2 --ignore tests/desk/browser -W ignore::DeprecationWarning \
		-W "ignore:unclosed <socket.socket:ResourceWarning"

# axe-core judges accessibility in the browser tests; without npm they are skipped with a word.
AXE_VERSION := 4.14.0
AXE_SHA256 := 20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878
build/axe-core/axe.min.js:
	mkdir -p build/axe-core
	cd build/axe-core && npm pack --silent axe-core@$(AXE_VERSION) > /dev/null
	tar -xzf build/axe-core/axe-core-$(AXE_VERSION).tgz -C build/axe-core --strip-components=1 package/axe.min.js package/LICENSE
	echo "$(AXE_SHA256)  $@" | sha256sum --check --quiet - || { rm -f $@; exit 1; }
	touch $@

bench: $(STAMP)
	$(RUN)python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
	$(RUN)python benchmarks/foundation.py
	$(RUN)python benchmarks/regain.py
	PYTHONPATH=. $(RUN)python benchmarks/bodies.py
	$(RUN)python benchmarks/speed.py
	$(RUN)python benchmarks/anonymous.py
	$(RUN)python benchmarks/fit_gap.py
	$(RUN)python benchmarks/table.py
	$(RUN)python benchmarks/serve.py
	$(RUN)python benchmarks/spark.py
	$(RUN)python benchmarks/scale.py
	$(RUN)python benchmarks/wide.py
	$(RUN)python -m benchmarks.codes
	$(if $(DATA),$(RUN)python -m benchmarks.versions --data $(DATA))

# covey beside other packages, each in an environment of its own; DATA is the folder with the tables, PEERS one with clones of the
# repositories that are on no package index (benchmarks/peers/compare.py lists them; absent ones are reported absent). Takes hours.
PEERS ?= build/peers/sources
bench-peers: $(STAMP)
	$(RUN)python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
	PYTHON=$(PYTHON) benchmarks/peers/environments.sh
	PEERS=$(PEERS) $(RUN)python -m benchmarks.peers.compare --data $(DATA)
	PEERS=$(PEERS) COVEY_DATA=$(DATA) $(RUN)python -m benchmarks.peers.coverage
	$(RUN)python -m benchmarks.peers.few --data $(DATA)
	$(RUN)python -m benchmarks.peers.growth
	PEERS=$(PEERS) $(RUN)python -m benchmarks.peers.characters --data $(DATA)
	PEERS=$(PEERS) $(RUN)python -m benchmarks.peers.mixed --data $(DATA)
	PEERS=$(PEERS) $(RUN)python -m benchmarks.peers.tabbench --data $(DATA)
	$(RUN)python -m benchmarks.peers.gym --data $(DATA)

# NIST's survey excerpt, judged by SDNist itself, which wants an old Python and old packages. SDNIST is its folder of the excerpts.
OLD_PYTHON ?= python3.10
build/sdnist/.installed: benchmarks/nist/constraints.txt
	$(OLD_PYTHON) -m venv --clear build/sdnist
	build/sdnist/bin/python -m pip install --quiet --disable-pip-version-check -c $< sdnist
	touch $@

bench-nist: $(STAMP) build/sdnist/.installed
	$(RUN)python -m benchmarks.nist --data $(DATA) --sdnist $(SDNIST)

# The pictures of docs/paper.md, from the notebooks of examples/paper: a few minutes.
figures: $(STAMP)
	$(RUN)python examples/paper/run.py

# Privacy audits of every mechanism and both methods, planted faults included, on all cores: an hour or more of two.
audit: $(STAMP)
	$(RUN)python -m audits

# Kills at 500 points, coverage, mutants of what privacy rests on, and tools that read code: hours. Tools live in an environment
# of their own. pip-audit asks an advisory database, so it needs the network and comes last.
TRUST := build/trust-env
$(TRUST)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(TRUST)
	$(TRUST)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,trust]'
	$(TRUST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt pycanon
	touch $@

trust: $(TRUST)/.installed
	$(TRUST)/bin/python -m trust.faults --kills 500
	$(TRUST)/bin/bandit --quiet --recursive src
	$(TRUST)/bin/pytest -n 2 --cov=covey --cov-report=term --cov-fail-under=95
	$(TRUST)/bin/python -m trust.mutants
	$(TRUST)/bin/pip-audit --requirement constraints.txt --no-deps --disable-pip

# A million inputs, and 5,000 random releases on their whole way, of seeds that are new every day; a find names its seed.
# What breaks covey of the inputs is left in build/fuzz. And questions whose answers are known.
SEED ?= $(shell date +%y%m%d)0000
fuzz: $(TRUST)/.installed
	$(TRUST)/bin/python -m fuzz releases --runs 5000 --seed $(SEED)
	$(TRUST)/bin/python -m fuzz answers --runs 300 --seed $(SEED)
	$(TRUST)/bin/python -m fuzz table --runs 400000
	$(TRUST)/bin/python -m fuzz schema --runs 600000

# Anonymeter wants an older numpy than covey, and lives apart. TABLE is a public CSV table.
ATTACKS := build/attacks-env
$(ATTACKS)/.installed:
	$(PYTHON) -m venv $(ATTACKS)
	$(ATTACKS)/bin/python -m pip install --quiet --disable-pip-version-check anonymeter==1.1.0
	touch $@

attacks: $(STAMP) $(ATTACKS)/.installed
	$(RUN)python -m trust.attacks release $(TABLE)
	$(ATTACKS)/bin/python -m trust.attacks attack

docs: $(STAMP)
	$(RUN)python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,docs]'
	NO_MKDOCS_2_WARNING=true $(RUN)mkdocs build --quiet --strict

# Every page of the site in a browser: accessibility in both colour schemes, nothing that runs out of the page.
docs-look: docs build/axe-core/axe.min.js
	$(RUN)python -m benchmarks.site

# Pictures of the app for the guide, taken by walking through it; needs Debian's chromium.
tour: $(STAMP)
	$(RUN)python -m benchmarks.tour

clean:
	rm -rf build $(ENV)
