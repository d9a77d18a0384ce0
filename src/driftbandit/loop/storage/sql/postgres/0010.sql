-- Learners of keys: one row each, as of the checkpoint `seq` and until the checkpoint `until`, NULL for those of now.
CREATE TABLE key_row (
  loop INTEGER NOT NULL, learner BIGINT NOT NULL, key TEXT COLLATE "C" NOT NULL, seq BIGINT NOT NULL, until BIGINT,
  features TEXT NOT NULL, last DOUBLE PRECISION, digest BYTEA NOT NULL, row BYTEA NOT NULL
);
ALTER TABLE key_row ALTER COLUMN row SET STORAGE EXTERNAL;  -- numbers do not get smaller
CREATE UNIQUE INDEX by_learner ON key_row (loop, learner, key, seq);
CREATE INDEX replaced ON key_row (loop, until) WHERE until IS NOT NULL;
UPDATE loop SET unpurged = (unpurged % 2147483648) * 4294967296;  -- the files of two tables from now on
