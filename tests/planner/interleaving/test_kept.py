"""What a stage keeps at least, against the counts of every pass."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from costmodel.stage.in_flight import most_counts
from planner.interleaving.kept import kept_floors


@given(st.data())
def test_no_cut_of_the_layers_keeps_less(data: st.DataObject) -> None:
    p, v = data.draw(st.integers(2, 8)), data.draw(st.integers(2, 5))
    m, i = p * data.draw(st.integers(1, 6)), data.draw(st.integers(0, p - 1))
    layers = np.array(data.draw(st.lists(st.integers(1, 6), min_size=v, max_size=v)))
    kept = (most_counts(p, i, m, v) @ layers).max()

    for const, each in kept_floors(p, i, m, v):
        assert const + each * layers.sum() <= kept * (1 + 1e-12)
