"""SDNist's own figures for synthetic files, as JSON. Runs in SDNist's environment: `judge.py DATA FILE …`.

DATA is SDNist's folder of the excerpts: config.json, mappings.json, data_dictionary.json, national/national2019.{csv,json}.
"""

import contextlib
import json
import sys
import tempfile
from pathlib import Path

import sdnist.report  # first: its modules import each other
from sdnist.load import TestDatasetName
from sdnist.metrics.inconsistency import Inconsistencies
from sdnist.metrics.kmarginal import KMarginal
from sdnist.metrics.propensity import PropensityMSE
from sdnist.report.dataset import Dataset
from sdnist.utils import SimpleLogger

assert sdnist.report


def judge(data, path):
    """The k-marginal score, the share of inconsistent records by group, the propensity score, and the worst area's score."""
    dataset = Dataset(Path(path), SimpleLogger(), TestDatasetName.national2019, Path(data), download=False)
    groups = ["PUMA"] if "PUMA" in dataset.features else []
    marginal = KMarginal(dataset.d_target_data, dataset.d_synthetic_data, groups)
    found = {"k_marginal": float(marginal.compute_score())}
    if groups:
        found["worst_area"] = float(marginal.scores.min())
    with tempfile.TemporaryDirectory() as folder:
        wrong = Inconsistencies(dataset.c_synthetic_data, Path(folder))
        wrong.compute()
        count = "Number of Records Inconsistent"
        found["inconsistent"] = {group["Inconsistency Group"]: int(group[count]) for group in wrong.stats["summary"]}
        propensity = PropensityMSE(dataset.t_target_data, dataset.t_synthetic_data, Path(folder), dataset.features)
        propensity.compute_score()
        found["propensity"] = float(propensity.pmse_score)
    return found


if __name__ == "__main__":
    out = {}
    for path in sys.argv[2:]:
        with contextlib.redirect_stdout(sys.stderr):
            out[path] = judge(sys.argv[1], path)
    print(json.dumps(out))
