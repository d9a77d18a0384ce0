"""Running studies: cells, workers, clusters, and the store of results. Imports `study` only."""
