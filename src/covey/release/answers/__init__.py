"""Answers with error bars for whoever receives a release: post-processing of what was measured, at no cost of privacy.

    measurements ── evidence ── moments of features ── estimates ── Answer
    centres ─────── rows (for what sampling adds, for regressions that are not linear) ┘

`Release` is the object that `covey.load` and `PrivateSynthesizer.release` give. Formulas, and what is approximate in them:
docs/proofs/intervals.md.
"""
