"""Whether a layout is legal: all broken rules at once, and what is legal but deserves a word.

One small function for each rule, found in a tuple. Rules of the first group guard the others: a
layout without stages or with a degree of 0 is not looked at any further.
"""

from costmodel.errors import Violation
from costmodel.layout.rule_tools import Rule, merged
from costmodel.layout.rules_batch import BATCH_RULES
from costmodel.layout.rules_degrees import DEGREE_RULES, positive
from costmodel.layout.rules_pools import POOL_RULES
from costmodel.layout.rules_structure import STRUCTURE_RULES, not_empty
from costmodel.layout.rules_warnings import WARNING_RULES
from costmodel.layout.values import Layout
from costmodel.problem import Problem

GUARDS: tuple[Rule, ...] = (not_empty, positive)
RULES: tuple[Rule, ...] = (*STRUCTURE_RULES, *DEGREE_RULES, *BATCH_RULES)


def violations(problem: Problem, layout: Layout, *, placed: bool = True) -> tuple[Violation, ...]:
    """Every rule that the layout breaks: field, value, rule and the nearest legal values.

    placed: false leaves out the rules on pools, when it is known that the pools are wrong.
    """
    for rules in (GUARDS, RULES + POOL_RULES * placed):
        found = merged(v for rule in rules for v in rule(problem, layout))
        if found:
            return found
    return ()


def warnings(problem: Problem, layout: Layout) -> tuple[str, ...]:
    """Sentences about a legal layout that its user should read."""
    return tuple(dict.fromkeys(w for rule in WARNING_RULES for w in rule(problem, layout)))
