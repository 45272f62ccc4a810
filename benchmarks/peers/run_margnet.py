"""MargNet from the folder PEERS/margnet: its generator network, with the settings of its repository for adult at ε = 1.

It has settings for its own tables alone, and asks for a graphics card; where there is none it runs on a processor.
"""

import os
import sys
import tempfile
from types import SimpleNamespace


def prepare(method):
    place = os.path.join(os.environ["PEERS"], "margnet")
    os.chdir(place)
    sys.path.insert(0, place)
    import tomli
    import torch
    from method.MargDL.main import MargDLGen
    from util.rho_cdp import cdp_rho

    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu":  # it asks for the memory of a graphics card, to report it
        torch.cuda.reset_peak_memory_stats = lambda *_: None
        torch.cuda.max_memory_allocated = lambda *_, **__: 0

    def synthesize(table, domain, rows, epsilon, delta):
        with open("method/MargDL/config/gan/adult.toml", "rb") as file:
            config = tomli.load(file)[f"{epsilon}"]
        told = SimpleNamespace(iter=None, lr=None, batch=None, test=False, resample=False)
        with tempfile.TemporaryDirectory() as folder:
            made = MargDLGen(told, table, dict(domain), device, config, folder, "gan")
            made.fit_adaptive(cdp_rho(epsilon, delta))
            return made.model.sample(rows)

    return synthesize
