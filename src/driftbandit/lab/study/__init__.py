"""Studies: environments x policies x seeds, as data and as TOML files, with labels and errors.

May import no other part of the lab, only recipes: policies and environments.
"""
