CREATE TABLE snapshot (  -- as in PostgreSQL, where others decide, too
  loop INTEGER PRIMARY KEY, lessons INTEGER NOT NULL, about TEXT NOT NULL, state BLOB NOT NULL
);
