CREATE TABLE access (  -- who may use a service over this database
  name TEXT PRIMARY KEY, roles TEXT NOT NULL, hash TEXT NOT NULL, made DOUBLE PRECISION NOT NULL
);
