"""The constants that are fitted, with what is thought of them before."""

from costmodel.calibration.linear import Parameter

PARAMETERS = (
    Parameter(name="gemm", prior=0.90, spread=0.10, low=0.4, high=1.3),
    Parameter(name="gemm_fixed_s", prior=5.3e-6, spread=0.4, low=1e-7, high=1e-4),
    Parameter(name="gemm_traffic", prior=0.56, spread=0.3, low=0.05, high=2.0),
    Parameter(name="expert_gemm", prior=0.80, spread=0.25, low=0.2, high=1.3),
    Parameter(name="low_precision", prior=1.15, spread=0.15, low=0.5, high=1.6),
    Parameter(name="attention", prior=0.85, spread=0.25, low=0.1, high=1.5),
    Parameter(name="memory_traffic", prior=1.6, spread=0.3, low=0.5, high=5.0),
    Parameter(name="host_op_s", prior=6e-05, spread=0.6, low=1e-6, high=3e-4),
    Parameter(name="host_expert_ops", prior=12.0, spread=0.5, low=1.0, high=60.0),
    Parameter(name="host_collective_ops", prior=0.3, spread=0.5, low=0.02, high=3.0),
    Parameter(name="tp_exposed", prior=0.85, spread=0.3, low=0.1, high=2.0),
    Parameter(name="tp_scale_out", prior=1.0, spread=0.5, low=0.2, high=10.0),
    Parameter(name="ep_exposed", prior=0.65, spread=0.4, low=0.05, high=3.0),
    Parameter(name="sync_traffic", prior=1.0, spread=0.4, low=0.2, high=6.0),
    Parameter(name="sharded_weights_exposed", prior=0.21, spread=0.3, low=0.01, high=2.0),
    Parameter(name="p2p_exposed", prior=0.5, spread=0.6, low=0.02, high=4.0),
    Parameter(name="step_overhead_s", prior=0.01, spread=0.4, low=1e-3, high=0.2),
    Parameter(name="expert_permute", prior=1.3, spread=0.5, low=0.3, high=6.0),
)
"""Eighteen, for all chips, models and layouts of a stack alike.

The prior of the pooled fit is an earlier fit of similar formulas to the same kinds of runs, and the
spread about that between its stacks: the standard deviation of a Gaussian prior on the logarithm.
A stack's own fit has the pooled one as its prior, and spreads that the stacks tell
(``costmodel.calibration.fit.Spreads``).
"""
