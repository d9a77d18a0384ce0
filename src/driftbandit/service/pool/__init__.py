"""The open loops of a service, and the threads that call them.

`loop_pool` opens each loop once and reopens one that has stopped; `batcher` makes the calls of
waiting requests together. May import limits, errors and the messages.
"""
