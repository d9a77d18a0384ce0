"""Reports of stored studies: statistics, tables, figures, a page, and the scorecards of suites.

May import `study`, `run` and `driftbandit.pages`. Plays nothing.
"""
