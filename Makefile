# Two commands matter: `make demo` and `make test`. The environment is built once and rebuilt only
# when the project's own requirements change.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
ENV := .venv
RUN := $(ENV)/bin/
STAMP := $(ENV)/.installed
export OPENBLAS_NUM_THREADS ?= 2

.PHONY: demo test check bench audit docs clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "covey needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(ENV)
	$(RUN)python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	# pycanon, an outside judge in the tests, asks for an older numpy than it needs.
	$(RUN)python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt pycanon
	touch $(STAMP)

demo: $(STAMP)
	$(RUN)python -m covey.demo --out build/demo --force

check: $(STAMP)
	$(RUN)ruff format --check .
	$(RUN)ruff check .
	$(RUN)mypy
	$(RUN)lint-imports

test: check
	$(RUN)pytest

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
	$(RUN)python benchmarks/speed.py
	$(RUN)python benchmarks/anonymous.py
	$(RUN)python benchmarks/fit_gap.py
	$(RUN)python benchmarks/table.py
	$(RUN)python benchmarks/serve.py
	$(RUN)python benchmarks/spark.py

# Privacy audits of every mechanism and both methods, planted faults included: about half an hour.
audit: $(STAMP)
	$(RUN)python -m audits

docs: $(STAMP)
	$(RUN)python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,docs]'
	NO_MKDOCS_2_WARNING=true $(RUN)mkdocs build --quiet --strict

clean:
	rm -rf build $(ENV)
