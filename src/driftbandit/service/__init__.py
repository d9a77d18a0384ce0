"""The decision service: HTTP over the loops of one ledger file.

`routes` is the table of what it answers, `endpoints` what it does, `door` who may ask and how much,
`loops` what is open, `live` and `dashboard` what people watch, `client` the other side. It stands
on loops; only evaluations need more, and load it when they are asked for.
"""
