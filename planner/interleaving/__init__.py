"""Pipelines whose stages hold several runs of layers: their search and a bound on all of them."""
