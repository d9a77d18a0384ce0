"""The decision service: HTTP over the loops of one ledger.

`routes` is the table of what it answers; a request passes `http`, then a function of `api`, which
calls an open loop from `pool`. Modules import downwards: cli, server, app, http, routes, api,
dashboard and ops, pool, limits, errors, schema. Only evaluations load driftbandit.evidence.
"""
