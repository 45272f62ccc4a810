"""Fits that take a few steps: for tests about what is read, charged, measured and written, not about accuracy."""


def few_steps(put=setattr):
    import covey._core.fit.factors
    import covey._core.fit.targets
    import covey._methods.regain.tables
    import covey.answers.bands
    from covey._core.fit.devices import descend

    for module in (covey._core.fit.factors, covey._core.fit.targets):
        put(module, "descend", lambda device, goal, start, steps: descend(device, goal, start, min(steps, 5)))
    put(covey._methods.regain.tables, "fit_steps", lambda *_: 20)
    put(covey._core.fit.factors, "DRAWS", 1)
    put(covey.answers.bands, "DRAWS", 20)
