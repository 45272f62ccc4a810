"""dpmm: PrivBayes, MST and AIM on codes of a public domain, so that no budget goes into preprocessing."""


def prepare(method):
    from dpmm.pipelines import PIPELINE_DICT

    def synthesize(table, domain, rows, epsilon, delta):
        pipeline = PIPELINE_DICT[method](epsilon=epsilon, delta=delta, n_jobs=1, disable_processing=True)
        pipeline.fit(table, domain=dict(domain))
        return pipeline.generate(n_records=rows)[list(domain)].astype(int)

    return synthesize
