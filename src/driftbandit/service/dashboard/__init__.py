"""The dashboard: one page without data, and the stream of events that fills it."""
