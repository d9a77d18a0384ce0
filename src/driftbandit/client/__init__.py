"""The client of a decision service: standard library only, and no import of the service.

`client` decides, `transport` sends and retries, `outbox` keeps what could not be sent.
"""
