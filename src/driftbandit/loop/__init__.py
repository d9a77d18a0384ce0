"""The loop: raw events in, decisions with known probabilities out, rewards that come late."""
