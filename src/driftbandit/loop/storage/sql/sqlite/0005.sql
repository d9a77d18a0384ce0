-- What says what a loop is, and where it can start from, is found without reading all decisions.
CREATE INDEX rare ON event (loop, seq)
  WHERE kind NOT IN ('decide', 'reward', 'cancel', 'metric', 'advance', 'erased');
