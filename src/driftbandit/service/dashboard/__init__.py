"""The dashboard: one page without data (`page`), and the stream of views that fills it (`live`).

May import the pool and below, and driftbandit.pages for colours and charts.
"""
