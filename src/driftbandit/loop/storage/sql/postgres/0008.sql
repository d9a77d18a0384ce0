-- A database limits the size of one value, so what a large checkpoint knows is in several.
CREATE TABLE checkpoint_piece (
  loop INTEGER NOT NULL, seq BIGINT NOT NULL, piece INTEGER NOT NULL, state BYTEA NOT NULL,
  PRIMARY KEY (loop, seq, piece)
);
ALTER TABLE checkpoint_piece ALTER COLUMN state SET STORAGE EXTERNAL;  -- numbers do not get smaller
