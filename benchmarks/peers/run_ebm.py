"""interpret's DP-EBM at its defaults, in its own environment: python run_ebm.py FOLDER prints its AUC and processor seconds."""

import json
import sys
import time
from pathlib import Path

import numpy as np


def main(folder: Path) -> None:
    from interpret.privacy import DPExplainableBoostingClassifier
    from sklearn.metrics import roc_auc_score

    facts, rows = json.loads((folder / "facts.json").read_text()), np.load(folder / "rows.npz")
    place, others = facts["place"], [j for j in range(len(facts["kinds"])) if j != facts["place"]]
    kinds = [facts["kinds"][j] for j in others]
    model = DPExplainableBoostingClassifier(
        feature_types=["continuous" if isinstance(kind, list) or kind else "nominal" for kind in kinds],
        privacy_bounds={
            k: (0, rows["train"][:, j].max()) if kind is True else tuple(kind)
            for k, (j, kind) in enumerate(zip(others, kinds, strict=True))
            if kind
        },
        epsilon=facts["epsilon"],
        delta=facts["delta"],
        random_state=facts["seed"],
        n_jobs=1,
    )
    begin = time.process_time()
    model.fit(rows["train"][:, others], rows["train"][:, place] == facts["yes"])
    seconds = time.process_time() - begin
    scores = model.predict_proba(rows["test"][:, others])[:, 1]
    print(roc_auc_score(rows["test"][:, place] == facts["yes"], scores), seconds)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
