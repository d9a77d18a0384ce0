"""Studies: environments x policies x seeds, as data and as TOML files.

Imports no other part of the lab.
"""
