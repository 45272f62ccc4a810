"""PrivateGBDT (Maddock and others, CCS 2022) from the folder PEERS/federated-boosted-dp-trees: python run_gbdt.py FOLDER.

Prints its AUC and processor seconds. It gets settings of its paper's experiments: 100 trees of depth 4 with random splits and
Newton steps, 32 candidates for splits, refined by the Hessian of five rounds; with "batches" in the facts trees are averaged by
thirties, which the paper proposes for small ε. It reads limits of numbers from the rows and sets δ = 1 / n: here it gets the
declared limits and our δ. Categories are codes, as in its own experiments.
"""

import json
import os
import sys
import time
from pathlib import Path

import numpy as np


def main(folder: Path) -> None:
    sys.path.insert(0, str(Path(os.environ["PEERS"]) / "federated-boosted-dp-trees"))
    from federated_gbdt.models.gbdt.private_gbdt import PrivateGBDT
    from sklearn.metrics import roc_auc_score

    facts, rows = json.loads((folder / "facts.json").read_text()), np.load(folder / "rows.npz")
    place, others = facts["place"], [j for j in range(len(facts["kinds"])) if j != facts["place"]]
    train, test = rows["train"][:, others].astype(float), rows["test"][:, others].astype(float)
    kinds, ends = facts["kinds"], facts["sizes"]
    limits = np.array([k if isinstance(k := kinds[j], list) else [0, ends[j] - 1] for j in others], dtype=float).T
    np.random.seed(facts["seed"])  # noqa: NPY002 # its noise comes from there
    batches = {"training_method": "batched_boosting", "batched_update_size": 30} if facts["batches"] else {}
    model = PrivateGBDT(
        num_trees=100,
        max_depth=4,
        dp_method="gaussian_cdp",
        split_method="totally_random",
        sketch_type="adaptive_hessian",
        sketch_rounds=5,
        epsilon=facts["epsilon"],
        track_budget=False,
        **batches,
    )
    candidates, budget = model.split_candidate_manager.find_split_candidates, model.privacy_accountant.assign_budget
    model.split_candidate_manager.find_split_candidates = lambda X, *rest, **named: candidates(limits, *rest, **named)
    model.privacy_accountant.assign_budget = lambda epsilon, delta, **named: budget(epsilon, facts["delta"], **named)
    begin = time.process_time()
    model.fit(np.clip(train, *limits), (rows["train"][:, place] == facts["yes"]).astype(int))
    seconds = time.process_time() - begin
    scores = model.predict_proba(np.clip(test, *limits))[:, 1]
    print(roc_auc_score(rows["test"][:, place] == facts["yes"], scores), seconds)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
