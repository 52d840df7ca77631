"""Traffic inside a stage."""

from dataclasses import replace

import numpy as np
import pytest

from costmodel.efficiency import DEFAULT_EFFICIENCY
from costmodel.layout.values import StageOption
from costmodel.stage.communication import Exchange, scaled_out
from costmodel.stage.local import group_arrays
from tests.costmodel.cases import problem


def test_tensor_parallel_traffic_between_nodes_is_as_slow_as_measured() -> None:
    """Eight chips a node: groups of 16 leave it, groups of 4 and 8 do not."""
    degrees = [4, 8, 16]
    options = [StageOption(pool="p", tp=tp) for tp in degrees]
    group = group_arrays(options, problem().cluster, degrees, [1, 1, 1])
    tp = Exchange(forward_s=np.ones(3), backward_s=2.0 * np.ones(3))
    slow = scaled_out(tp, group, replace(DEFAULT_EFFICIENCY, tp_scale_out=3.0))

    assert slow.forward_s == pytest.approx([1.0, 1.0, 3.0])
    assert slow.backward_s == pytest.approx([2.0, 2.0, 6.0])
