"""Writing: callers hand in pending events, one thread at a time orders and stores them.

`sequencer` gives each event its `seq` or refuses it, `writer` stores what waits in one transaction,
`signals` keeps Ctrl-C from cutting it in half.
May import state and storage; it never learns and never decides.
"""
