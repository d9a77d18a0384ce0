"""Clients of a decision service: `exchange` is what they say, `client` and `async_client` play it,
`transport` sends and retries, `outbox` keeps fallback decisions until they are sent, and `tracking`
sends rewards for OpenFeature.

May import the standard library and driftbandit.ids, and `async_client` httpx, when it is used.
"""
