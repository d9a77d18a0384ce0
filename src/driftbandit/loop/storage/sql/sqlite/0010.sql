-- Learners of keys: one row each, as of the checkpoint `seq` and until the checkpoint `until`, NULL for those of now.
CREATE TABLE key_row (
  loop INTEGER NOT NULL, learner INTEGER NOT NULL, key TEXT NOT NULL, seq INTEGER NOT NULL, until INTEGER,
  features TEXT NOT NULL, last REAL, digest BLOB NOT NULL, row BLOB NOT NULL
);
CREATE UNIQUE INDEX by_learner ON key_row (loop, learner, key, seq);
CREATE INDEX replaced ON key_row (loop, until) WHERE until IS NOT NULL;
