-- Named queries. A line "-- name: ..." begins a query; placeholders are the database's own.

-- name: loop_id
SELECT id FROM loop WHERE name = %s

-- name: new_loop
INSERT INTO loop (name) VALUES (%s) ON CONFLICT DO NOTHING

-- name: declared_loops
SELECT name FROM loop
  WHERE EXISTS (SELECT 1 FROM event WHERE event.loop = loop.id AND event.seq = 1) ORDER BY name

-- name: stored_loops
SELECT name FROM loop WHERE EXISTS (SELECT 1 FROM event WHERE event.loop = loop.id) ORDER BY name

-- name: bounds
SELECT base, start FROM loop WHERE id = %s

-- name: set_bounds
UPDATE loop SET base = %s, start = %s WHERE id = %s

-- name: insert_events
INSERT INTO event (loop, seq, kind, at, id, key, data, k, v, seal) VALUES

-- name: last_seq
SELECT max(seq) FROM event WHERE loop = %s

-- name: events_from
SELECT seq, kind, at, id, key, data, k, v FROM event WHERE loop = %s AND seq >= %s ORDER BY seq LIMIT %s

-- name: light_events_from
SELECT seq, kind, at, id, key, CASE WHEN kind = 'decide' AND substr(data, 1, 9) <> '{"spend":' THEN '{}' ELSE data END, k, v
  FROM event WHERE loop = %s AND seq >= %s ORDER BY seq LIMIT %s

-- name: light_events_after
SELECT seq, kind, at, id, key, CASE WHEN kind = 'decide' AND substr(data, 1, 9) <> '{"spend":' THEN '{}' ELSE data END, k, v, seal
  FROM event WHERE loop = %s AND seq > %s ORDER BY seq

-- name: seal_at
SELECT seal FROM event WHERE loop = %s AND seq = %s

-- name: newest_seal
SELECT seq, seal FROM event WHERE loop = %s ORDER BY seq DESC LIMIT 1

-- name: sealed_events_from
SELECT seq, kind, at, id, key, data, k, v, seal FROM event WHERE loop = %s AND seq >= %s ORDER BY seq LIMIT %s

-- name: sealed_lasting_events
SELECT seq, kind, at, id, key, data, k, v, seal FROM event
  WHERE loop = %s AND seq < %s AND kind IN ('declare', 'configure', 'arm', 'add_features', 'shadow', 'retire', 'promote', 'demote', 'recount', 'set', 'grow')
    AND kind NOT IN ('decide', 'reward', 'cancel', 'metric', 'advance', 'erased')
  ORDER BY seq

-- name: newest_anchor
SELECT seq, kind, at, id, key, data, k, v FROM event
  WHERE loop = %s AND kind = 'anchor'
    AND kind NOT IN ('decide', 'reward', 'cancel', 'metric', 'advance', 'erased')
  ORDER BY seq DESC LIMIT 1

-- name: lasting_events
SELECT seq, kind, at, id, key, data, k, v FROM event
  WHERE loop = %s AND kind IN ('declare', 'configure', 'arm', 'add_features', 'shadow', 'retire', 'promote', 'demote', 'recount', 'set', 'grow')
    AND kind NOT IN ('decide', 'reward', 'cancel', 'metric', 'advance', 'erased')  -- as in the index
  ORDER BY seq

-- name: events_at
SELECT seq, kind, at, id, key, data, k, v FROM event WHERE loop = %s AND seq = ANY(%s)

-- name: decision
SELECT seq, kind, at, id, key, data, k, v FROM event WHERE loop = %s AND id = %s AND kind = 'decide'

-- name: latest_of_key
SELECT seq, kind, at, id, key, data, k, v FROM event
  WHERE loop = %s AND key = %s AND kind = 'decide' ORDER BY seq + 0 DESC LIMIT 1  -- not by the index of all events

-- name: cancels
SELECT seq, kind, at, id, key, data, k, v FROM event WHERE loop = %s AND id = %s AND kind = 'cancel'

-- name: decision_before
SELECT seq, kind, at, id, key, data, k, v FROM event
  WHERE loop = %s AND kind = 'decide' AND at <= %s ORDER BY seq DESC LIMIT 1

-- name: events_of_key
SELECT seq, kind FROM event WHERE loop = %s AND seq > %s AND id IN (
  SELECT id FROM event WHERE loop = %s AND key = %s AND kind = 'decide') ORDER BY seq

-- name: events_over_key
SELECT seq FROM event WHERE loop = %s AND seq > %s AND kind = 'reward' AND data::json ->> 'over' IN (
  SELECT id FROM event WHERE loop = %s AND key = %s AND kind = 'decide') ORDER BY seq

-- name: blank_events
UPDATE event SET kind = 'erased', id = NULL, key = NULL, data = '{}', k = NULL,
  seal = substr(seal, 1, 64)  -- without the salt
  WHERE loop = %s AND seq = ANY(%s)

-- name: delete_old_events
DELETE FROM event WHERE place IN (
  SELECT place FROM event
    WHERE loop = %s AND seq < %s AND kind NOT IN ('declare', 'configure', 'arm', 'add_features', 'shadow', 'retire', 'promote', 'demote', 'recount', 'set', 'grow')
    LIMIT %s)

-- name: checkpoints
SELECT seq, kind, at, id, key, data, k, v FROM event
  WHERE loop = %s AND kind = 'checkpoint'
    AND seq IN (SELECT seq FROM checkpoint WHERE checkpoint.loop = event.loop)
    AND kind NOT IN ('decide', 'reward', 'cancel', 'metric', 'advance', 'erased')
  ORDER BY seq

-- name: decision_after
SELECT seq FROM event WHERE loop = %s AND seq >= %s AND kind = 'decide' AND at > %s
  ORDER BY seq LIMIT 1

-- name: checkpoint_before
SELECT max(seq) FROM event WHERE loop = %s AND kind = 'checkpoint' AND at <= %s
  AND kind NOT IN ('decide', 'reward', 'cancel', 'metric', 'advance', 'erased')

-- name: checkpoint_state
SELECT state FROM checkpoint WHERE loop = %s AND seq = %s

-- name: save_checkpoint
INSERT INTO checkpoint VALUES (%s, %s, %s) ON CONFLICT DO NOTHING

-- name: checkpoint_pieces
SELECT state FROM checkpoint_piece WHERE loop = %s AND seq = %s ORDER BY piece

-- name: save_piece
INSERT INTO checkpoint_piece VALUES (%s, %s, %s, %s)
  ON CONFLICT (loop, seq, piece) DO UPDATE SET state = excluded.state

-- name: delete_pieces
DELETE FROM checkpoint_piece WHERE loop = %s AND seq = %s

-- name: delete_pieces_before
DELETE FROM checkpoint_piece WHERE loop = %s AND seq < %s

-- name: blank_checkpoints_before
UPDATE event SET data = '{}', seal = substr(seal, 1, 64) WHERE loop = %s AND seq IN (
  SELECT seq FROM checkpoint WHERE checkpoint.loop = event.loop AND checkpoint.seq < %s) AND kind = 'checkpoint'

-- name: delete_checkpoints_before
DELETE FROM checkpoint WHERE loop = %s AND seq < %s

-- name: checkpoint_kept
SELECT 1 FROM checkpoint WHERE loop = %s AND seq = %s

-- name: delete_checkpoint
DELETE FROM checkpoint WHERE loop = %s AND seq = %s

-- name: key_row
SELECT key, features, last, digest, row FROM key_row
  WHERE loop = %s AND learner = %s AND key = %s AND seq <= %s AND (until IS NULL OR until > %s)

-- name: key_rows_after
SELECT key, features, last, digest, row FROM key_row
  WHERE loop = %s AND learner = %s AND key > %s AND seq <= %s AND (until IS NULL OR until > %s) ORDER BY key LIMIT %s

-- name: keys_after
SELECT key FROM key_row
  WHERE loop = %s AND learner = %s AND key > %s AND seq <= %s AND (until IS NULL OR until > %s) ORDER BY key LIMIT %s

-- name: replace_key_row
UPDATE key_row SET seq = %s, features = %s, last = %s, digest = %s, row = %s
  WHERE loop = %s AND learner = %s AND key = %s AND until IS NULL AND seq > %s

-- name: end_key_row
UPDATE key_row SET until = %s WHERE loop = %s AND learner = %s AND key = %s AND until IS NULL AND seq < %s

-- name: new_key_row
INSERT INTO key_row (loop, learner, key, seq, features, last, digest, row) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
  ON CONFLICT (loop, learner, key, seq) DO NOTHING

-- name: end_learner
UPDATE key_row SET until = %s WHERE loop = %s AND learner = %s AND until IS NULL AND seq < %s

-- name: delete_key_rows
DELETE FROM key_row WHERE loop = %s AND learner = %s AND key = %s

-- name: delete_key_rows_between
DELETE FROM key_row WHERE loop = %s AND until > %s AND until <= %s AND seq > %s

-- name: snapshot
SELECT about, state FROM snapshot WHERE loop = %s AND examples > %s AND examples <= %s

-- name: publish_snapshot
INSERT INTO snapshot VALUES (%s, %s, %s, %s) ON CONFLICT (loop) DO UPDATE
  SET examples = excluded.examples, about = excluded.about, state = excluded.state
  WHERE snapshot.examples < excluded.examples

-- name: delete_snapshot
DELETE FROM snapshot WHERE loop = %s

-- name: api_keys
SELECT name, roles, hash, made FROM access ORDER BY name

-- name: new_api_key
INSERT INTO access VALUES (%s, %s, %s, %s)

-- name: delete_api_key
DELETE FROM access WHERE name = %s

-- name: lock_alone
SELECT pg_try_advisory_lock(%s, (SELECT id FROM loop WHERE name = %s))

-- name: lock_shared
SELECT pg_try_advisory_lock_shared(%s, (SELECT id FROM loop WHERE name = %s))

-- name: count_locks
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND classid = %s AND objid = (SELECT id FROM loop WHERE name = %s)

-- name: take_turn
SELECT 1 FROM loop WHERE name = %s FOR UPDATE

-- name: no_time_limit
SET LOCAL idle_in_transaction_session_timeout = 0

-- name: unpurged
SELECT unpurged FROM loop WHERE id = %s

-- name: set_unpurged
UPDATE loop SET unpurged = (pg_relation_filenode('event')::bigint %% 2147483648) * 4294967296
  + pg_relation_filenode('key_row')::bigint %% 2147483648 WHERE id = %s

-- name: set_purged
UPDATE loop SET unpurged = NULL WHERE id = %s AND unpurged = %s

-- name: older_readers
SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()
  AND (backend_xmin::text::bigint < %s OR backend_xid::text::bigint < %s)

-- name: table_file
SELECT pg_relation_filenode(%s)::bigint %% 2147483648, pg_table_size(%s)

-- name: next_transaction
SELECT (pg_current_xact_id()::text::numeric % 4294967296)::bigint
