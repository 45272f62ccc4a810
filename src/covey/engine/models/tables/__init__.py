"""`regain`: private synthetic data that is accurate at ordinary sizes.

The idea is the paper's: a private low-rank summary, weighted centres in K, bootstrapping, randomized rounding. The order is
turned around. First the moments are measured privately, then the centres are chosen as post-processing, so that nothing of
the covariance is lost:

    moments → noise → shrinkage → weighted centres in K → certificate → (per sample) bootstrapping → balanced rounding

A plan fixes every choice from public numbers, `measure_…` functions are all that is asked of records (through the gate): in
`bits` (flags), `tables` (categories and numbers) and `reals` (bodies). Why each step is private: docs/proofs/; what was tried:
docs/decisions/.

The default method, in the order in which it is best read:

- `tables`: the method itself, phase by phase;
- `plan_tables`, `plan_one_way`: the public plan, what is measured and what each charge may spend;
- `table_counts`, `measure_tables`: what is counted, and how it is measured through the gate;
- `discretize`: cells and bins, from noisy one-way tables;
- `important`: pairs that matter most, and triples; `prior`: public rows of the same kind;
- `predict`: what a release will be like.
"""
