import importlib
import subprocess
import sys

import polars as pl
import pytest

from covey.errors import MissingExtraError, optional
from covey.table.sources import read_table


def test_heavy_packages_are_imported_late(tmp_path):
    """And pandas never, where a file is read: it would take longer than reading."""
    pl.DataFrame({"mood": ["good", "bad"] * 50}).write_parquet(tmp_path / "t.parquet")
    code = (
        "import sys, covey.table.schema, covey.table.codec, covey.table.sources, covey.table.metadata;"
        "late = not any(m in sys.modules for m in ('polars', 'pandas', 'pyarrow', 'narwhals', 'yaml'));"
        "rows = covey.table.sources.read_table(sys.argv[1]).rows;"
        "sys.exit(not late or rows != 100 or 'pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, tmp_path / "t.parquet"], check=False).returncode == 0


def test_a_missing_package_names_the_install_line(monkeypatch):
    def refuse(name, *rest):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(MissingExtraError, match=r"pip install 'covey\[table\]'"):
        read_table({"age": [1]})


def test_pandas_is_nobodys_extra_but_spark_s(monkeypatch):
    monkeypatch.setattr(importlib, "import_module", lambda name: (_ for _ in ()).throw(ImportError(name)))
    with pytest.raises(MissingExtraError, match=r"this needs pandas: pip install pandas$"):
        optional("pandas")
