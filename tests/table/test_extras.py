import importlib
import subprocess
import sys

import pytest

from covey.errors import MissingExtraError
from covey.table.sources import read_table


def test_heavy_packages_are_imported_late():
    code = (
        "import sys, covey.table.schema, covey.table.codec, covey.table.sources, covey.table.metadata;"
        "sys.exit(any(m in sys.modules for m in ('polars', 'pandas', 'pyarrow', 'narwhals', 'yaml')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_package_names_the_install_line(monkeypatch):
    def refuse(name, *rest):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(MissingExtraError, match=r"pip install 'covey\[table\]'"):
        read_table({"age": [1]})
