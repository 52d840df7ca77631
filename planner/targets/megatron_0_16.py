"""Megatron-Core 0.16, the released version."""

from planner.targets.megatron_rules import MEGATRON_RULES
from planner.targets.target import Target

TARGET = Target(
    name="megatron",
    version="0.16",
    title="Megatron-Core 0.16",
    source="megatron-core 0.16.1: transformer_config.py, pipeline_parallel_layer_layout.py",
    maintained=True,
    rules=MEGATRON_RULES,
)
