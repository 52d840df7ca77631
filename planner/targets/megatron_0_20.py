"""Megatron-Core 0.20, the development version of August 2026."""

from planner.targets.megatron_rules import MEGATRON_RULES, MTP_NOT_FIRST
from planner.targets.target import Target

TARGET = Target(
    name="megatron",
    version="0.20",
    title="Megatron-Core 0.20",
    source="github.com/NVIDIA/Megatron-LM d98e8a6 (2026-08-22)",
    maintained=True,
    default=False,
    rules=(*MEGATRON_RULES, MTP_NOT_FIRST),
)
