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
from sdnist.metrics.regression import LinearRegressionMetric
from sdnist.report.dataset import Dataset
from sdnist.utils import SimpleLogger, df_filter, to_num

assert sdnist.report
NEEDED = ["EDU", "PINCP_DECILE", "RAC1P", "SEX"]
# The report's groups: race (native: American Indian, Alaskan Native, Native Hawaiian) and sex.
RACES, SEXES = {"white": [1], "black": [2], "asian": [6], "native": [3, 4, 5, 7]}, {"men": [1], "women": [2]}


def regressions(dataset, folder):
    """Slope and intercept of income's decile on education, true and synthetic, for all and for the report's eight groups."""
    true, synthetic = (to_num(data[NEEDED].copy()) for data in (dataset.target_data, dataset.c_synthetic_data))
    groups = {"all": []}
    groups |= {f"{r} {s}": [["RAC1P", race], ["SEX", sex]] for r, race in RACES.items() for s, sex in SEXES.items()}
    found = {}
    for name, where in groups.items():
        own, other = df_filter(true, where), df_filter(synthetic, where)
        words = {key: dataset.data_dict[key] for key in NEEDED[:2]}
        metric = LinearRegressionMetric(own, other, words, Path(folder, name.replace(" ", "-")))
        metric.compute()
        lines = metric.t_slope, metric.t_intercept, metric.s_slope, metric.s_intercept
        found[name] = [len(own), len(other), *map(float, lines)]
    return found


def judge(data, path):
    """The k-marginal score, inconsistent records by group, propensity, the worst area's score, regressions by group."""
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
        if {*NEEDED} <= {*dataset.features}:
            found["regressions"] = regressions(dataset, folder)
    return found


if __name__ == "__main__":
    out = {}
    for path in sys.argv[2:]:
        with contextlib.redirect_stdout(sys.stderr):
            out[path] = judge(sys.argv[1], path)
    print(json.dumps(out))
