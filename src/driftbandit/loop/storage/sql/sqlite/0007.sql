-- The chain of a ledger: link, digest and salt of every event, NULL in events of version 0.2.
ALTER TABLE event ADD COLUMN seal BLOB;
