-- A database limits the size of one value, so what a large checkpoint knows is in several.
CREATE TABLE checkpoint_piece (
  loop INTEGER NOT NULL, seq INTEGER NOT NULL, piece INTEGER NOT NULL, state BLOB NOT NULL,
  PRIMARY KEY (loop, seq, piece)
);
