import numpy as np
import polars as pl
import pytest

from covey.demo import demonstrate, example_patients
from covey.errors import ArgumentError
from covey.release.verify import verify_bundle


def test_the_example_table_is_realistic_and_reproducible():
    names, X = example_patients(5000)
    assert X.shape == (5000, len(names))
    assert (example_patients(5000)[1] == X).all()
    at = names.index
    assert X[:, at("female")].mean() == np.float64(0.53)
    correlation = np.corrcoef(X.T)
    assert correlation[at("diabetes"), at("obesity")] > 0.1
    assert correlation[at("copd"), at("smoker")] > 0.1


def test_the_demo_takes_patients_the_whole_way_and_ends_with_a_report(tmp_path, capsys):
    demonstrate(tmp_path, 400, force=False)
    said = capsys.readouterr().out
    report = tmp_path / "release" / "report.html"
    assert said.splitlines()[-1] == f"Open this report: {report}"
    assert "with 95% confidence" in said
    table = pl.read_csv(tmp_path / "patients.csv", infer_schema=False)
    assert table.height == 400
    assert table["weight"].null_count() > 5  # holes, as in any real table
    written = b"".join(path.read_bytes() for path in (tmp_path / "release").iterdir())
    assert not any(cell.encode() in written for name in ("record", "name") for cell in table[name])
    assert verify_bundle(tmp_path / "release").rows == 400
    with pytest.raises(ArgumentError, match="exists"):
        demonstrate(tmp_path, 400, force=False)
    with pytest.raises(ArgumentError, match="100 or more"):
        demonstrate(tmp_path / "few", 9, force=False)
