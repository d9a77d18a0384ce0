"""The client of a decision service: `client` decides, `transport` sends and retries, `outbox` keeps
fallback decisions until they are sent.

May import the standard library and driftbandit.ids, and nothing else.
"""
