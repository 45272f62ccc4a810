"""Tab-PE from the folder PEERS/DPSDA: private evolution of 1,000 rows, with the settings of its example for adult.

All columns are categories, and none is a label: labels would be released with their true shares. Rows are drawn from the last
1,000. Its guarantee is for rows that are added or removed. "labelled 1000" has the settings of its example for Artificial
Characters, "labelled 5000" those for Person Activity: the last column as label, and the real limits of numbers and shares of
labels, which these examples take without noise.
"""

import json
import os
import sys
import tempfile
from unittest.mock import MagicMock

ITERATIONS, LABELLED = 30, 15


def prepare(method):
    kind, _, many = method.partition(" ")
    sys.path.insert(0, os.path.join(os.environ["PEERS"], "DPSDA"))
    import pandas as pd

    # It imports what makes and measures images and texts, with packages that are on no index; tables need none of it.
    sys.modules |= {
        f"pe.{room}.{kind}": MagicMock() for room in ("api", "data", "embedding") for kind in ("image", "text")
    }
    pd.options.mode.copy_on_write = True
    from pe.api import TabularAPI
    from pe.constant.data import LABEL_ID_COLUMN_NAME, TABULAR_DATA_COLUMN_NAME, VARIATION_API_FOLD_ID_COLUMN_NAME
    from pe.data import Data, TabularColumnType, TabularCSV
    from pe.embedding import TabularEmbedding
    from pe.histogram import NearestNeighbors
    from pe.population import CompositePopulation, PEPopulation
    from pe.runner import PE

    def synthesize(table, domain, rows, epsilon, delta):
        names = list(domain)
        info = {
            name: {"categories": list(range(domain[name])), "type": TabularColumnType.CATEGORICAL} for name in names
        }
        frame = pd.DataFrame({TABULAR_DATA_COLUMN_NAME: table[names].to_numpy().tolist(), LABEL_ID_COLUMN_NAME: 0})
        facts = {"cat_columns": names, "int_columns": [], "float_columns": [], "feature_columns": names}
        label = [{"name": "all", "column_values": {}}]
        data = Data(data_frame=frame, metadata={**facts, "label_columns": [], "label_info": label})
        found = evolved(data, info, TabularAPI(info, num_iterations=ITERATIONS), ITERATIONS, (epsilon, delta))
        drawn = found[TABULAR_DATA_COLUMN_NAME].sample(rows, replace=True, random_state=0)
        return pd.DataFrame(drawn.tolist(), columns=names).astype(int)

    def labelled(table, domain, rows, epsilon, delta):
        *names, label = list(domain)
        kinds = [name for name in names if domain[name]]
        whole = [name for name in names if name not in kinds and (table[name] % 1 == 0).all()]
        rest = [name for name in names if name not in kinds + whole]
        facts = {"cat_columns": kinds, "int_columns": whole, "float_columns": rest}
        with tempfile.TemporaryDirectory() as folder:
            table.to_csv(f"{folder}/rows.csv", index=False)
            with open(f"{folder}/facts.json", "w") as file:
                json.dump(facts | {"label_columns": [label]}, file)
            data = TabularCSV(f"{folder}/rows.csv", f"{folder}/facts.json")
        info, rates = data.get_tab_info(), {"mutation_rate_init": 0.5, "mutation_rate_final": 0.01}
        api = TabularAPI(info=info, decay_type="polynomial", gamma=0.2, num_iterations=LABELLED, **rates)
        found = evolved(data, info, api, LABELLED, (epsilon, delta)).sample(rows, replace=True, random_state=0)
        out = pd.DataFrame(found[TABULAR_DATA_COLUMN_NAME].tolist(), columns=data.metadata["feature_columns"])
        values = [own["column_values"][label] for own in data.metadata["label_info"]]
        return out.assign(**{label: [values[k] for k in found[LABEL_ID_COLUMN_NAME]]})[list(domain)]

    def evolved(data, info, api, iterations, promise):
        nearest = NearestNeighbors(embedding=TabularEmbedding(info), mode="L2", lookahead_degree=0, backend="torch")
        first = {"initial_variation_api_fold": 0, "next_variation_api_fold": 1, "histogram_threshold": 0}
        later = {"initial_variation_api_fold": 3, "next_variation_api_fold": 3}
        draws = PEPopulation(api=api, keep_selected=False, selection_mode="sample", **first)
        ranks = PEPopulation(api=api, keep_selected=True, selection_mode="rank", **later)
        population = CompositePopulation(populations=[draws] * 5 + [ranks] * (iterations - 5))
        runner = PE(priv_data=data, population=population, histogram=nearest)
        epsilon, delta = promise
        schedule = [int(many or 1_000)] * iterations
        done = runner.run(num_samples_schedule=schedule, delta=delta, epsilon=epsilon, save_checkpoint=False)
        found = done.data_frame
        if VARIATION_API_FOLD_ID_COLUMN_NAME in found:
            found = found[found[VARIATION_API_FOLD_ID_COLUMN_NAME] == -1]
        return found

    return labelled if kind == "labelled" else synthesize
