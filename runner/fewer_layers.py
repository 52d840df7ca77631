"""Leaves out layers where all of them would take too long, in proportion and in place.

Pipelines that cut the stack at different layers share layers, so the stack is cut at every stage
boundary of any pipeline, and each piece keeps its share of layers and every kind of block in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from costmodel.layout.values import Layout, Pipeline, Stage
from costmodel.model.graph import ModelGraph


def fewer_layers(graph: ModelGraph, layout: Layout, keep: float) -> tuple[ModelGraph, Layout]:
    """The model and layout with a share ``keep`` of the layers, at least one per piece and kind."""
    edges = {0, graph.num_layers}
    for pipeline in layout.pipelines:
        for stage in pipeline.stages:
            edges.update(end for chunk in stage.chunks for end in chunk)
    kept: list[int] = []
    for start, stop in pairwise(sorted(edges)):
        kept.extend(_chosen(graph.layers, start, stop, keep))
    where = {edge: sum(layer < edge for layer in kept) for edge in edges}
    smaller = replace(graph, layers=tuple(graph.layers[layer] for layer in kept))
    pipelines = tuple(_moved(pipeline, where) for pipeline in layout.pipelines)
    return smaller, replace(layout, pipelines=pipelines)


def _chosen(layers: Sequence[str], start: int, stop: int, keep: float) -> list[int]:
    """First layer of each kind, then evenly spread ones."""
    kinds = {layers[i]: i for i in reversed(range(start, stop))}
    count = max(len(kinds), round((stop - start) * keep))
    spread = [start + i * (stop - start) // count for i in range(count)]
    order = [*kinds.values(), *spread, *range(start, stop)]
    return sorted(list(dict.fromkeys(order))[:count])


def _moved(pipeline: Pipeline, where: dict[int, int]) -> Pipeline:
    def stage(old: Stage) -> Stage:
        return replace(old, chunks=tuple((where[a], where[b]) for a, b in old.chunks))

    return replace(pipeline, stages=tuple(stage(s) for s in pipeline.stages))
