"""Audits of the privacy claim: what shipped code really gives away, measured on worst-case neighbouring tables.

`make audit` runs every case with many samples, then plants faults one after the other and expects an alarm for each, then runs
clean code twenty times and expects none; docs/benchmarks/audit.md is what it found. A small part of the same runs in `make test`.

    statistics.py   a lower bound on ε, with 99.9% confidence, from two samples
    instruments.py  rows and noise without overhead, and a spy on every place where noise meets data
    mechanisms.py   cases: single mechanisms on their worst neighbours
    methods.py      cases: `paper` and `regain` from end to end
    checks.py       what needs no statistics: support, streams, order of charge and noise, record by record
    odometer.py     fits run again on other tables with the same noisy answers: charges held to their amounts, bytes compared
    evidence.py     what a ride of the odometer exercises, counted on the ride itself
    rides.py        the rides; more of them in persons, linked, bodies, trees, learned, knowledge (rules, priors) and commands
    faults.py       planted faults, each with the case or check that must notice
"""
