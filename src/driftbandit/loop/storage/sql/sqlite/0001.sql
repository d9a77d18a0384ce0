CREATE TABLE loop (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
  base INTEGER NOT NULL DEFAULT 0,  -- the checkpoint that replays start from, 0 for none
  start INTEGER NOT NULL DEFAULT 1  -- the first event that is kept, apart from declarations
);
CREATE TABLE event (
  place INTEGER PRIMARY KEY,
  loop INTEGER NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL, at REAL NOT NULL,
  id TEXT, key TEXT, data TEXT NOT NULL
);
CREATE UNIQUE INDEX by_seq ON event (loop, seq);
CREATE UNIQUE INDEX by_id ON event (loop, id) WHERE kind = 'decide';
CREATE INDEX by_key ON event (loop, key) WHERE key IS NOT NULL;
CREATE TABLE checkpoint (
  loop INTEGER NOT NULL, seq INTEGER NOT NULL, state BLOB NOT NULL, PRIMARY KEY (loop, seq)
);
