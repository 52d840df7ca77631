"""Finds the baselines, every module of this package that defines ``BASELINE``, and scores them."""

import importlib
import pkgutil
from collections.abc import Iterable
from functools import cache

import planner.baselines
from costmodel.errors import InputError
from costmodel.layout.values import Layout
from costmodel.problem import Problem
from costmodel.step import evaluate
from planner.baselines.baseline import BaselineRule, Setting
from planner.values import Baseline


@cache
def baseline_rules() -> tuple[BaselineRule, ...]:
    """All baselines in the order of tables."""
    found: list[BaselineRule] = []
    for module in pkgutil.iter_modules(planner.baselines.__path__):
        loaded = importlib.import_module(f"{planner.baselines.__name__}.{module.name}")
        rule = getattr(loaded, "BASELINE", None)
        if isinstance(rule, BaselineRule):
            found.append(rule)
    return tuple(sorted(found, key=lambda rule: rule.order))


def compared(setting: Setting, step_time_s: float, *, every: bool) -> tuple[Baseline, ...]:
    """Step times of the baselines that apply, those that always go with a plan or every one."""
    rules = (rule for rule in baseline_rules() if every or rule.always)
    return tuple(_scored(rules, setting, step_time_s))


def _scored(
    rules: Iterable[BaselineRule], setting: Setting, step_time_s: float
) -> Iterable[Baseline]:
    for rule in rules:
        if rule.applies(setting):
            seconds = seconds_of(setting.problem, rule.propose(setting))
            speedup = None if seconds is None else seconds / step_time_s
            yield Baseline(name=rule.name, step_time_s=seconds, speedup=speedup)


def seconds_of(problem: Problem, layout: Layout | None) -> float | None:
    """Step time of a baseline's layout; None when there is none or it does not fit."""
    if layout is None:
        return None
    try:
        evaluation = evaluate(problem, layout)
    except InputError:
        return None
    return evaluation.step_time_s if evaluation.fits else None
