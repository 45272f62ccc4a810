"""`regain`: private synthetic data that is accurate at ordinary sizes.

The idea is the paper's: a private low-rank summary, weighted centres in K, bootstrapping, randomized rounding. The order is
turned around. First the moments are measured privately, then the centres are chosen as post-processing, so that nothing of
the covariance is lost:

    moments → noise → shrinkage → weighted centres in K → certificate → (per sample) bootstrapping → balanced rounding

A plan fixes every choice from public numbers, `measure_…` functions are all that is asked of records (through the gate): in
`bits` (flags), `tables` (categories and numbers, with `plan_tables`, `measure_tables` and `important`) and `reals` (bodies). Why
each step is private: docs/proofs/; what was tried: docs/decisions/.
"""
