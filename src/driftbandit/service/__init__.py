"""The decision service: HTTP over the loops of one ledger file.

`routes` is the table of what it answers, `endpoints` what it does, `door` who may ask and how much,
`loops` what is open, `client` the other side. It stands on loops and never on the lab.
"""
