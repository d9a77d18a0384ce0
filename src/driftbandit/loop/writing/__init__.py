"""Writing: callers hand in pending events, one writer thread orders and stores them in groups.

`sequencer` gives each event its `seq` or refuses it, `writer` stores what waits in one transaction.
May import state and storage; it never learns and never decides.
"""
