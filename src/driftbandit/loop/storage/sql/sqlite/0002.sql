CREATE TABLE access (  -- who may use a service over this file
  name TEXT PRIMARY KEY, roles TEXT NOT NULL, hash TEXT NOT NULL, made REAL NOT NULL
);
