"""Tables with numbers: what a reader of a synthetic one notices.

The folder is not called numbers: scripts beside it would find it in place of Python's own module.
"""
