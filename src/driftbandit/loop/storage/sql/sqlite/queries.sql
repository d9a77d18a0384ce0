-- Named queries. A line "-- name: ..." begins a query; placeholders are the database's own.

-- name: loop_id
SELECT id FROM loop WHERE name = ?

-- name: new_loop
INSERT INTO loop (name) VALUES (?) ON CONFLICT DO NOTHING

-- name: declared_loops
SELECT name FROM loop
  WHERE EXISTS (SELECT 1 FROM event WHERE event.loop = loop.id AND event.seq = 1) ORDER BY name

-- name: stored_loops
SELECT name FROM loop WHERE EXISTS (SELECT 1 FROM event WHERE event.loop = loop.id) ORDER BY name

-- name: bounds
SELECT base, start FROM loop WHERE id = ?

-- name: set_bounds
UPDATE loop SET base = ?, start = ? WHERE id = ?

-- name: insert_events
INSERT INTO event (loop, seq, kind, at, id, key, data, k, v, seal) VALUES

-- name: last_seq
SELECT max(seq) FROM event WHERE loop = ?

-- name: events_from
SELECT seq, kind, at, id, key, data, k, v FROM event WHERE loop = ? AND seq >= ? ORDER BY seq LIMIT ?

-- name: light_events_from
SELECT seq, kind, at, id, key, CASE WHEN kind = 'decide' AND substr(data, 1, 9) <> '{"spend":' THEN '{}' ELSE data END, k, v
  FROM event WHERE loop = ? AND seq >= ? ORDER BY seq LIMIT ?

-- name: light_events_after
SELECT seq, kind, at, id, key, CASE WHEN kind = 'decide' AND substr(data, 1, 9) <> '{"spend":' THEN '{}' ELSE data END, k, v, seal
  FROM event WHERE loop = ? AND seq > ? ORDER BY seq

-- name: seal_at
SELECT seal FROM event WHERE loop = ? AND seq = ?

-- name: newest_seal
SELECT seq, seal FROM event WHERE loop = ? ORDER BY seq DESC LIMIT 1

-- name: sealed_events_from
SELECT seq, kind, at, id, key, data, k, v, seal FROM event WHERE loop = ? AND seq >= ? ORDER BY seq LIMIT ?

-- name: sealed_lasting_events
SELECT seq, kind, at, id, key, data, k, v, seal FROM event
  WHERE loop = ? AND seq < ? AND kind IN ('declare', 'configure', 'arm', 'add_features', 'shadow', 'retire', 'promote', 'demote', 'recount', 'set', 'grow')
    AND kind NOT IN ('decide', 'reward', 'cancel', 'metric', 'advance', 'erased')
  ORDER BY seq

-- name: newest_anchor
SELECT seq, kind, at, id, key, data, k, v FROM event
  WHERE loop = ? AND kind = 'anchor'
    AND kind NOT IN ('decide', 'reward', 'cancel', 'metric', 'advance', 'erased')
  ORDER BY seq DESC LIMIT 1

-- name: lasting_events
SELECT seq, kind, at, id, key, data, k, v FROM event
  WHERE loop = ? AND kind IN ('declare', 'configure', 'arm', 'add_features', 'shadow', 'retire', 'promote', 'demote', 'recount', 'set', 'grow')
    AND kind NOT IN ('decide', 'reward', 'cancel', 'metric', 'advance', 'erased')  -- as in the index
  ORDER BY seq

-- name: events_at
SELECT seq, kind, at, id, key, data, k, v FROM event WHERE loop = ? AND seq IN (SELECT value FROM json_each(?))

-- name: decision
SELECT seq, kind, at, id, key, data, k, v FROM event WHERE loop = ? AND id = ? AND kind = 'decide'

-- name: latest_of_key
SELECT seq, kind, at, id, key, data, k, v FROM event
  WHERE loop = ? AND key = ? AND kind = 'decide' ORDER BY place DESC LIMIT 1  -- by_key has them in this order

-- name: cancels
SELECT seq, kind, at, id, key, data, k, v FROM event WHERE loop = ? AND id = ? AND kind = 'cancel'

-- name: decision_before
SELECT seq, kind, at, id, key, data, k, v FROM event
  WHERE loop = ? AND kind = 'decide' AND at <= ? ORDER BY seq DESC LIMIT 1

-- name: events_of_key
SELECT seq, kind FROM event WHERE loop = ? AND seq > ? AND id IN (
  SELECT id FROM event WHERE loop = ? AND key = ? AND kind = 'decide') ORDER BY seq

-- name: events_over_key
SELECT seq FROM event WHERE loop = ? AND seq > ? AND kind = 'reward' AND json_extract(data, '$.over') IN (
  SELECT id FROM event WHERE loop = ? AND key = ? AND kind = 'decide') ORDER BY seq

-- name: blank_events
UPDATE event SET kind = 'erased', id = NULL, key = NULL, data = '{}', k = NULL,
  seal = substr(seal, 1, 64)  -- without the salt
  WHERE loop = ? AND seq IN (SELECT value FROM json_each(?))

-- name: delete_old_events
DELETE FROM event WHERE place IN (
  SELECT place FROM event
    WHERE loop = ? AND seq < ? AND kind NOT IN ('declare', 'configure', 'arm', 'add_features', 'shadow', 'retire', 'promote', 'demote', 'recount', 'set', 'grow')
    LIMIT ?)

-- name: checkpoints
SELECT seq, kind, at, id, key, data, k, v FROM event
  WHERE loop = ? AND kind = 'checkpoint'
    AND seq IN (SELECT seq FROM checkpoint WHERE checkpoint.loop = event.loop)
    AND kind NOT IN ('decide', 'reward', 'cancel', 'metric', 'advance', 'erased')
  ORDER BY seq

-- name: decision_after
SELECT seq FROM event WHERE loop = ? AND seq >= ? AND kind = 'decide' AND at > ?
  ORDER BY seq LIMIT 1

-- name: checkpoint_before
SELECT max(seq) FROM event WHERE loop = ? AND kind = 'checkpoint' AND at <= ?
  AND kind NOT IN ('decide', 'reward', 'cancel', 'metric', 'advance', 'erased')

-- name: checkpoint_state
SELECT state FROM checkpoint WHERE loop = ? AND seq = ?

-- name: save_checkpoint
INSERT INTO checkpoint VALUES (?, ?, ?) ON CONFLICT DO NOTHING

-- name: checkpoint_pieces
SELECT state FROM checkpoint_piece WHERE loop = ? AND seq = ? ORDER BY piece

-- name: save_piece
INSERT INTO checkpoint_piece VALUES (?, ?, ?, ?)
  ON CONFLICT (loop, seq, piece) DO UPDATE SET state = excluded.state

-- name: delete_pieces
DELETE FROM checkpoint_piece WHERE loop = ? AND seq = ?

-- name: delete_pieces_before
DELETE FROM checkpoint_piece WHERE loop = ? AND seq < ?

-- name: blank_checkpoints_before
UPDATE event SET data = '{}', seal = substr(seal, 1, 64) WHERE loop = ? AND seq IN (
  SELECT seq FROM checkpoint WHERE checkpoint.loop = event.loop AND checkpoint.seq < ?) AND kind = 'checkpoint'

-- name: delete_checkpoints_before
DELETE FROM checkpoint WHERE loop = ? AND seq < ?

-- name: checkpoint_kept
SELECT 1 FROM checkpoint WHERE loop = ? AND seq = ?

-- name: delete_checkpoint
DELETE FROM checkpoint WHERE loop = ? AND seq = ?

-- name: key_row
SELECT key, features, last, digest, row FROM key_row
  WHERE loop = ? AND learner = ? AND key = ? AND seq <= ? AND (until IS NULL OR until > ?)

-- name: key_rows_after
SELECT key, features, last, digest, row FROM key_row
  WHERE loop = ? AND learner = ? AND key > ? AND seq <= ? AND (until IS NULL OR until > ?) ORDER BY key LIMIT ?

-- name: keys_after
SELECT key FROM key_row
  WHERE loop = ? AND learner = ? AND key > ? AND seq <= ? AND (until IS NULL OR until > ?) ORDER BY key LIMIT ?

-- name: replace_key_row
UPDATE key_row SET seq = ?, features = ?, last = ?, digest = ?, row = ?
  WHERE loop = ? AND learner = ? AND key = ? AND until IS NULL AND seq > ?

-- name: end_key_row
UPDATE key_row SET until = ? WHERE loop = ? AND learner = ? AND key = ? AND until IS NULL AND seq < ?

-- name: new_key_row
INSERT INTO key_row (loop, learner, key, seq, features, last, digest, row) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (loop, learner, key, seq) DO NOTHING

-- name: end_learner
UPDATE key_row SET until = ? WHERE loop = ? AND learner = ? AND until IS NULL AND seq < ?

-- name: delete_key_rows
DELETE FROM key_row WHERE loop = ? AND learner = ? AND key = ?

-- name: delete_key_rows_between
DELETE FROM key_row WHERE loop = ? AND until > ? AND until <= ? AND seq > ?

-- name: snapshot
SELECT about, state FROM snapshot WHERE loop = ? AND examples > ? AND examples <= ?

-- name: publish_snapshot
INSERT INTO snapshot VALUES (?, ?, ?, ?) ON CONFLICT (loop) DO UPDATE
  SET examples = excluded.examples, about = excluded.about, state = excluded.state
  WHERE snapshot.examples < excluded.examples

-- name: delete_snapshot
DELETE FROM snapshot WHERE loop = ?

-- name: api_keys
SELECT name, roles, hash, made FROM access ORDER BY name

-- name: new_api_key
INSERT INTO access VALUES (?, ?, ?, ?)

-- name: delete_api_key
DELETE FROM access WHERE name = ?

-- name: unpurged
SELECT unpurged FROM loop WHERE id = ?

-- name: set_unpurged
UPDATE loop SET unpurged = coalesce(unpurged, 0) + 1 WHERE id = ?

-- name: set_purged
UPDATE loop SET unpurged = NULL WHERE id = ? AND unpurged = ?

-- name: touch
UPDATE loop SET base = base WHERE id = (SELECT min(id) FROM loop)
