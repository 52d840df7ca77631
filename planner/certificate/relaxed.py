"""Stage options as the certificate sees them: never slower, never larger than they are.

All options of one number of sequences per micro-batch form an *offer*; stages of one pipeline come
from one offer. Layers are alike here: ``docs/theory/certificate.md``, lemma 4, says how unlike
ones are reduced to alike ones.
"""

from typing import NamedTuple

import numba as nb
import numpy as np

from planner.arrays import FloatArray, IntArray

SLACK = 1e-9
"""Relative allowance for rounding wherever a relaxation is computed."""


class Offer(NamedTuple):
    """Options of one offer; O options, L like layers, P stages at most.

    work, forward: F + B and F of a layer, seconds; first_, last_: what the embedding and the head
    add; all (O,). hand_over: least seconds to the next stage, both directions, (O,). tail: least
    seconds between the last backward of a first stage with n layers and the end of the step,
    (O, L + 1). inner, first, last, alone: most layers of a stage with j micro-batches in flight
    that holds neither end of the model, the embedding, the head, both, (O, P + 1).
    """

    work: FloatArray
    forward: FloatArray
    first_work: FloatArray
    first_forward: FloatArray
    last_work: FloatArray
    last_forward: FloatArray
    hand_over: FloatArray
    tail: FloatArray
    inner: IntArray
    first: IntArray
    last: IntArray
    alone: IntArray


def options_of(offer: Offer, rows: IntArray) -> Offer:
    """The offer with these of its options."""
    return Offer(
        work=offer.work[rows],
        forward=offer.forward[rows],
        first_work=offer.first_work[rows],
        first_forward=offer.first_forward[rows],
        last_work=offer.last_work[rows],
        last_forward=offer.last_forward[rows],
        hand_over=offer.hand_over[rows],
        tail=offer.tail[rows],
        inner=offer.inner[rows],
        first=offer.first[rows],
        last=offer.last[rows],
        alone=offer.alone[rows],
    )


class Sizes(NamedTuple):
    """Bytes of one chip, (O,): of a layer whatever is in flight and for each micro-batch in flight;
    the same of the embedding and of the head; what both share; short-lived; room."""

    layer: FloatArray
    kept: FloatArray
    first: FloatArray
    first_kept: FloatArray
    last: FloatArray
    last_kept: FloatArray
    shared: FloatArray
    transient: FloatArray
    first_transient: FloatArray
    last_transient: FloatArray
    room: FloatArray


def most_layers(x: Sizes, in_flight: IntArray, layers: int, *, first: bool, last: bool) -> IntArray:
    """Layers for which there is room, (O, len(in_flight)); at most ``layers``."""
    j = in_flight[None, :].astype(np.float64)
    transient = x.transient
    fixed = np.zeros((len(x.room), len(in_flight)))
    if first:
        fixed = fixed + x.first[:, None] + j * x.first_kept[:, None]
        transient = np.maximum(transient, x.first_transient)
    if last:
        fixed = fixed + x.last[:, None] + j * x.last_kept[:, None]
        transient = np.maximum(transient, x.last_transient)
    if first and last:
        fixed = fixed - x.shared[:, None]
    left = x.room[:, None] * (1 + SLACK) - transient[:, None] - fixed
    each = x.layer[:, None] + j * x.kept[:, None]
    return np.clip(np.floor(left / each * (1 + SLACK) + SLACK), 0, layers).astype(np.int64)


@nb.njit(cache=True, nogil=True)
def beaten(kind: IntArray, costs: FloatArray, rooms: IntArray) -> IntArray:
    """1 for options that another of the same type beats: costs (O, A) no larger, rooms (O, B) no
    smaller; of equal ones the first stays."""
    size = len(kind)
    lost = np.zeros(size, np.int64)
    for y in range(size):
        for z in range(size):
            if z == y or lost[z] or kind[z] != kind[y]:
                continue
            if np.all(costs[z] <= costs[y]) and np.all(rooms[z] >= rooms[y]):
                lost[y] = 1
                break
    return lost
