"""One function for each route, over the public methods of a loop.

`loops` decides and declares, `candidates` compares and promotes, `reports` reads the log. May
import the dashboard, ops, the pool and the messages; nothing here knows HTTP.
"""
