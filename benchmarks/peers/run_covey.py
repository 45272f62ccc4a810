"""covey, called as its README says."""

# Columns of the census table whose categories are bins of a number: public knowledge, which the method can use.
ORDERED = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")


def prepare(method):
    import covey

    def kind(domain):
        return None if set(domain.values()) == {2} else list(domain.values())

    def private(table, domain, rows, epsilon, delta):
        ordinal = [i for i, name in enumerate(domain) if name in ORDERED]
        synth = covey.PrivateSynthesizer(epsilon, delta, domain=kind(domain), ordinal=ordinal)
        return synth.fit(table.to_numpy()).sample(rows)

    def anonymous(table, domain, rows, epsilon, delta):
        return covey.AnonymousSynthesizer(group_size=20, domain=kind(domain)).fit(table.to_numpy()).sample(rows)

    return {"private": private, "anonymous": anonymous}[method]
