"""Storage: events in one gap-free order, in SQLite or PostgreSQL; SQL stands in `sql/`.

`events` says what an event is, `ledger` what a loop stores and reads, `store` what a
database must offer.
Imports nothing of the loop but its errors: nothing here knows what events mean.
"""
