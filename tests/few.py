"""Fits that take a few steps: for tests about what is read, charged, measured and written, not about accuracy."""


def few_steps(put=setattr):
    import covey.answers.bands
    import covey.core.fit.factors
    import covey.core.fit.targets
    import covey.methods.regain.tables
    from covey.core.fit.devices import descend

    for module in (covey.core.fit.factors, covey.core.fit.targets):
        put(module, "descend", lambda device, goal, start, steps: descend(device, goal, start, min(steps, 5)))
    put(covey.methods.regain.tables, "fit_steps", lambda *_: 20)
    put(covey.core.fit.factors, "DRAWS", 1)
    put(covey.answers.bands, "DRAWS", 20)
