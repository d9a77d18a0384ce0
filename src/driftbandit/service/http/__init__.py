"""What every request passes on its way in and out: authentication, limits, decoding, errors.

`gateway` answers, `auth` checks API keys, `openapi` describes the routes. May import the routes
and everything below them.
"""
