CREATE TABLE loop (
  id INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL UNIQUE,
  base BIGINT NOT NULL DEFAULT 0,  -- the checkpoint that replays start from, 0 for none
  start BIGINT NOT NULL DEFAULT 1  -- the first event that is kept, apart from declarations
);
CREATE TABLE event (
  place BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  loop INTEGER NOT NULL, seq BIGINT NOT NULL, kind TEXT NOT NULL, at DOUBLE PRECISION NOT NULL,
  id TEXT, key TEXT, data TEXT NOT NULL
);
CREATE UNIQUE INDEX by_seq ON event (loop, seq);
CREATE UNIQUE INDEX by_id ON event (loop, id) WHERE kind = 'decide';
CREATE INDEX by_key ON event (loop, key) WHERE key IS NOT NULL;
CREATE TABLE checkpoint (
  loop INTEGER NOT NULL, seq BIGINT NOT NULL, state BYTEA NOT NULL, PRIMARY KEY (loop, seq)
);
