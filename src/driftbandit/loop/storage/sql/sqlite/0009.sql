-- Sticky answers: whether a decision was cancelled is found without reading what came after it.
CREATE INDEX cancelled ON event (loop, id) WHERE kind = 'cancel';
