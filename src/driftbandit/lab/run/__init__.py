"""Running studies: cells, processes or a Dask cluster, the version of the code, stored results.

May import `study`, and of the library what plays: policies, environments, `simulate`.
"""
