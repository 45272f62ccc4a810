"""Numbers and dates at their own precision: private measures, cells and bins of them, rank covariances, values again."""
