"""Searches for the fastest parallel layout of a training job on a mixed cluster."""

from costmodel.job import Job
from planner.explanation import explain
from planner.plan_reading import read_plan
from planner.spine import plan
from planner.values import Plan

__all__ = ["Job", "Plan", "explain", "plan", "read_plan"]
