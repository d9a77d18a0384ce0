"""State: what the events mean, as pure functions of the log.

`reward_windows` says which decisions are open and which examples they give,
`asking` whose votes a decision needs, `spending` how much each comparison may err,
`definition` what the loop is.
May import config and storage; no clock, no thread, no learner.
"""
