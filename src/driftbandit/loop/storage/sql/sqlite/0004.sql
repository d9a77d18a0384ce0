-- Version 0.3: the size of a slate and the version of a payload are columns, and lessons are examples.
ALTER TABLE event ADD COLUMN k INTEGER;  -- positions of a slate, NULL for other events
ALTER TABLE event ADD COLUMN v INTEGER NOT NULL DEFAULT 1;  -- version of the payload, 0.2 wrote 1
UPDATE event SET k = CAST(substr(data, 6, instr(data, ',') - 6) AS INTEGER)
  WHERE kind = 'decide' AND substr(data, 1, 5) = '{"k":';
DELETE FROM snapshot;
ALTER TABLE snapshot RENAME COLUMN lessons TO examples;
