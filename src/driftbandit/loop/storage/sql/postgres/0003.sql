CREATE TABLE snapshot (  -- the learner as it was a moment ago, for those who decide elsewhere
  loop INTEGER PRIMARY KEY, lessons BIGINT NOT NULL, about TEXT NOT NULL, state BYTEA NOT NULL
);
ALTER TABLE snapshot ALTER COLUMN state SET STORAGE EXTERNAL;  -- numbers do not get smaller
