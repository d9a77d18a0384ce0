-- Version 0.3: what an erasure has yet to remove from the database's own copies, and checkpoints
-- that no replay uses: their payloads may name keys.
ALTER TABLE loop ADD COLUMN unpurged INTEGER;  -- number of the schema at the latest erasure, NULL once all is gone
UPDATE event SET data = '{}' WHERE kind = 'checkpoint'
  AND NOT EXISTS (SELECT 1 FROM checkpoint WHERE checkpoint.loop = event.loop AND checkpoint.seq = event.seq);
