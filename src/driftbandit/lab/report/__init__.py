"""Reports of stored studies: statistics, tables, figures and a page. Imports `study` and `run`."""
