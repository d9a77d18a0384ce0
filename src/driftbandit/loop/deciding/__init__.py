"""Deciding: what was asked, what each arm's probability is, which arm is drawn, and why.

Pure functions of a request, the settings and what the learner knows; `offers` remembers what one
of them gave, `payloads` is their stored form.
May import exploration, config, state and storage; nothing here writes, waits or learns.
"""
