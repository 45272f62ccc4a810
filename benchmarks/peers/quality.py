"""SDMetrics' quality score, in its own environment: python quality.py FOLDER prints one number.

It compares every pair of columns with a table of its own, slowly: of wide tables it gets the first columns only.
"""

import json
import sys
from pathlib import Path

import pandas as pd

WIDEST = 20


def main() -> None:
    from sdmetrics.reports.single_table import QualityReport

    folder = Path(sys.argv[1])
    real, synthetic = (pd.read_csv(folder / name).astype(str) for name in ("table.csv", "synthetic.csv"))
    names = list(json.loads((folder / "domain.json").read_text()))[:WIDEST]
    columns = {name: {"sdtype": "categorical"} for name in names}
    report = QualityReport()
    report.generate(real[names], synthetic[names], {"columns": columns}, verbose=False)
    print(report.get_score())


if __name__ == "__main__":
    main()
