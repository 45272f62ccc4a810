"""Tab-PE from the folder PEERS/DPSDA: private evolution of 1,000 rows, with the settings of its example for adult.

All columns are categories, and none is a label: labels would be released with their true shares. Rows are drawn from the last
1,000. Its guarantee is for rows that are added or removed.
"""

import os
import sys
from unittest.mock import MagicMock

ITERATIONS, EVOLVED = 30, 1_000


def prepare(method):
    sys.path.insert(0, os.path.join(os.environ["PEERS"], "DPSDA"))
    import pandas as pd

    # It imports what makes and measures images and texts, with packages that are on no index; tables need none of it.
    sys.modules |= {
        f"pe.{room}.{kind}": MagicMock() for room in ("api", "data", "embedding") for kind in ("image", "text")
    }
    pd.options.mode.copy_on_write = True
    from pe.api import TabularAPI
    from pe.constant.data import LABEL_ID_COLUMN_NAME, TABULAR_DATA_COLUMN_NAME, VARIATION_API_FOLD_ID_COLUMN_NAME
    from pe.data import Data, TabularColumnType
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
        api = TabularAPI(info, num_iterations=ITERATIONS)
        nearest = NearestNeighbors(TabularEmbedding(info), mode="L2", lookahead_degree=0, backend="torch")
        first = {"initial_variation_api_fold": 0, "next_variation_api_fold": 1, "histogram_threshold": 0}
        later = {"initial_variation_api_fold": 3, "next_variation_api_fold": 3}
        draws = PEPopulation(api=api, keep_selected=False, selection_mode="sample", **first)
        ranks = PEPopulation(api=api, keep_selected=True, selection_mode="rank", **later)
        population = CompositePopulation(populations=[draws] * 5 + [ranks] * (ITERATIONS - 5))
        runner = PE(priv_data=data, population=population, histogram=nearest)
        schedule = [EVOLVED] * ITERATIONS
        done = runner.run(num_samples_schedule=schedule, delta=delta, epsilon=epsilon, save_checkpoint=False)
        found = done.data_frame
        if VARIATION_API_FOLD_ID_COLUMN_NAME in found:
            found = found[found[VARIATION_API_FOLD_ID_COLUMN_NAME] == -1]
        drawn = found[TABULAR_DATA_COLUMN_NAME].sample(rows, replace=True, random_state=0)
        return pd.DataFrame(drawn.tolist(), columns=names).astype(int)

    return synthesize
