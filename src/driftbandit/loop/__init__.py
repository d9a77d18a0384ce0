"""Loops: raw events in, decisions with known probabilities out, all of it in an append-only ledger.

`loop` is the public class over `calls` and `runtime`. `deciding` chooses, `writing` orders events,
`storage` keeps them, `state` says what they mean, `training` and `learning` learn from them,
`candidates` are compared, `reporting` reads. May import bandits and features, never the lab.
"""
