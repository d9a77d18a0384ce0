"""The report of an evaluation: sentences, tables, charts and one page that opens without a network.

May import the numbers that it describes, estimators and pages.
"""
