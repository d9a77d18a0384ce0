"""driftbandit next to what people use today: `make bench-peers`.

`registry` says who plays with which settings, `worlds` draws the streams, `play` is the process
that a peer's own environment runs with that peer's adapter, `contest` decides what is still to be
played, `timing` measures all of them in one interleaved run, `report` writes the results.
"""
