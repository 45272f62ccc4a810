"""The SIGMOD 2025 benchmark's own code from the folder PEERS/margnet, a later repository of its author that holds all of it.

    python run_tabbench.py FOLDER WORK NAME PART

scores FOLDER/synthetic by the benchmark's evaluators against the rows of FOLDER/real (its .npy files) and prints JSON. NAME is
the table's name, PART the rows that fidelity and queries are measured against ("train" or "test"), and WORK keeps what its tuner
found for the models that it judges by. As a runner of one_run.py it makes rows with a method of the benchmark, by the
benchmark's own preprocessing; the option says METHOD/TABLE/PREPROCESSING. The code writes beside itself, so it runs in a copy.
"""

import contextlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

# Its catboost has up to 2,000 rounds on four cores and is tuned for hours: here it has fixed settings for all tables.
CATBOOST = {"iterations": 300, "thread_count": 1, "learning_rate": 0.1, "depth": 6, "early_stopping_rounds": 50}


def enter():
    """A copy of the repository among temporary files, which everything below reads and writes."""
    place = tempfile.mkdtemp()
    shutil.copytree(Path(os.environ["PEERS"]) / "margnet", place, dirs_exist_ok=True)
    os.chdir(place)
    sys.path.insert(0, place)
    return Path(place)


def prepare(option):
    method, name, preprocessing = option.split("/")
    place = enter()
    import numpy as np
    import pandas as pd
    import torch
    from preprocess_common.load_data_common import data_preporcesser_common
    from util.rho_cdp import cdp_rho
    from util.util import algo_method, make_exp_dir

    vars(np).update(product=np.prod, infty=np.inf)  # PrivSyn and GEM know numpy 1
    torch.set_num_threads(1)  # MargNet asks for the memory of a graphics card, to report it
    torch.cuda.reset_peak_memory_stats = lambda *_: None
    torch.cuda.max_memory_allocated = lambda *_, **__: 0

    if method == "privsyn":
        link(np, pd)

    def synthesize(table, domain, rows, epsilon, delta):
        folder = place / "data" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        save(table, folder, np)
        (folder / "domain.json").write_text(json.dumps(domain))
        told = {"iter": None, "lr": None, "batch": None, "test": False, "resample": False, "graph_sample": False}
        told |= {"method": method, "dataset": name, "device": "cpu", "epsilon": epsilon, "delta": delta}
        told |= {"num_preprocess": preprocessing, "rare_threshold": 0.002, "pub": False}
        args = SimpleNamespace(**told)
        args.parent_dir, _ = make_exp_dir(args)
        rho, coder = cdp_rho(epsilon, delta), data_preporcesser_common(args)
        frame, sizes, used = coder.load_data(str(folder), rho)
        given = {"parent_dir": args.parent_dir, "preprocesser": coder, "df_pub": None}
        made = algo_method(args)(args, df=frame, domain=sizes, rho=(1 - used) * rho, **given)
        from evaluator.eval_sample import eval_sampler

        out = place / "out"
        out.mkdir()
        eval_sampler(method, {"sample": {"sample_num": rows}, "parent_dir": str(out)}, "cpu", coder, **made)
        parts = [np.load(out / f"{kind}_train.npy", allow_pickle=True) for kind in ("X_num", "X_cat", "y")]
        return pd.DataFrame(np.column_stack([p.astype(object) for p in parts]), columns=list(domain))

    return synthesize


def link(np, pd):
    """PrivSyn updates an array and gives back a frame that shared its memory in pandas 1.3.5. Later it gives back its start."""
    from method.privsyn.lib_synthesize.records_update import RecordUpdate

    begin = RecordUpdate.initialize_records

    def initialize(self, *given, **named):
        begin(self, *given, **named)
        self.records = np.ascontiguousarray(self.df.to_numpy(np.uint32, copy=True))
        self.df = pd.DataFrame(self.records, columns=self.df.columns, copy=False)

    RecordUpdate.initialize_records = initialize


def save(table, folder, np, part="train"):
    """A frame as the benchmark keeps it: numbers, categories and label apart."""
    for kind, start in (("X_num", "num"), ("X_cat", "cat")):
        own = table[[c for c in table if c.startswith(start)]]
        np.save(
            folder / f"{kind}_{part}.npy", own.to_numpy(float) if start == "num" else own.astype(str).to_numpy(object)
        )
    np.save(folder / f"y_{part}.npy", table["y_attr"].to_numpy(int))


def tune(folder, work, name, model):
    """What the benchmark's tuner finds for a model, once: ten trials, five folds each."""
    kept = work / model / f"{name}_cv.json"
    if not kept.exists():
        for part in ("num", "cat"):  # the tuner reads test rows, which adult has not, and does nothing with them
            if not (folder / f"X_{part}_test.npy").exists():
                shutil.copy(folder / f"X_{part}_val.npy", folder / f"X_{part}_test.npy")
        if not (folder / "y_test.npy").exists():
            shutil.copy(folder / "y_val.npy", folder / "y_test.npy")
        command = [sys.executable, "evaluator/tune_eval_model.py", name, model, "cv", "cpu"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(f"eval_models/{model}/{name}_cv.json", kept)
    return json.loads(kept.read_text())


def score(real, synthetic, name, part, work):
    """All scores of one synthetic table."""
    import numpy as np
    from evaluator.eval_query import make_query
    from evaluator.eval_simple import train_simple
    from evaluator.eval_tvd import make_tvd

    judged = "real" if part == "train" else "test"
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 # the evaluator draws its questions from there
    found = {"query": make_query(synthetic, real, "binclass", 1000, 3, seeds=0, test_data=judged)}
    tvd = make_tvd(synthetic, real, test_data=judged)
    found |= {"TVD1": tvd["1way margin"], "TVD2": tvd["2way margin"]}
    told = {"seed": 0, "normalization": "minmax", "num_nan_policy": None, "cat_nan_policy": None}
    told |= {"cat_min_frequency": None, "cat_encoding": None, "y_policy": "default"}
    given = {"parent_dir": synthetic, "data_path": real, "eval_type": "synthetic", "seed": 0, "change_val": False}
    given |= {"test_data": judged, "T_dict": told}
    tuned = tune(Path(real), work, name, "xgb") | {"n_jobs": 1}
    report = train_simple(model_name="xgb", params=tuned, **given)
    found |= {"xgb": report.get_metric("test", "f1"), "xgb, other rows": report.get_metric("val", "f1")}
    from evaluator.eval_catboost import train_catboost

    given["T_dict"] = told | {"normalization": None}
    report = train_catboost(params=dict(CATBOOST), **given)
    found |= {"catboost": report.get_metric("test", "f1"), "catboost, other rows": report.get_metric("val", "f1")}
    return {key: float(value) for key, value in found.items()}


def main():
    folder, work, name, part = sys.argv[1:]
    folder, work = Path(folder).absolute(), Path(work).absolute()
    real = enter() / "data" / name
    shutil.rmtree(real, ignore_errors=True)
    shutil.copytree(folder / "real", real)
    with contextlib.redirect_stdout(sys.stderr):
        found = score(f"data/{name}", str(folder / "synthetic"), name, part, work)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
