import numpy as np

from covey.demo import example_patients, main


def test_the_example_table_is_realistic_and_reproducible():
    names, X = example_patients(5000)
    assert X.shape == (5000, len(names))
    assert (example_patients(5000)[1] == X).all()
    at = names.index
    assert X[:, at("female")].mean() == np.float64(0.53)
    correlation = np.corrcoef(X.T)
    assert correlation[at("diabetes"), at("obesity")] > 0.1
    assert correlation[at("copd"), at("smoker")] > 0.1


def test_the_demo_says_where_and_how_good(tmp_path, capsys):
    assert main(["--out", str(tmp_path), "--rows", "1000"]) == 0
    said = capsys.readouterr().out
    assert str(tmp_path / "private.csv") in said
    assert "typical error" in said
    assert "with 95% confidence" in said
    header, *rows = (tmp_path / "private.csv").read_text().splitlines()
    assert header.startswith("female,over_65")
    assert len(rows) == 1000
