"""Settings of a case that are misspelled or out of range, which would be read as others."""

import re
from typing import cast

from costmodel.calibration.case import Case, Section, UnscorableError
from costmodel.calibration.stated_schedule import is_known_schedule

MODES = ("none", "full", "select", "selective", "custom")
"""First words of what a case says is recomputed."""

MODULES = ("core_attn", "mlp", "moe", "moe_act", "mla_up_proj", "layernorm", "norm", "act")
"""Parts of a layer that a case may list as recomputed instead."""

WHOLE = (
    ("parallel", ("tp", "pp", "vp", "cp", "ep", "etp", "dp", "mbs", "gbs")),
    ("hardware", ("n_chips", "chips_per_node", "scale_up_domain")),
    ("model", ("layers", "hidden", "heads", "kv_heads", "ffn_hidden", "vocab", "seq", "experts")),
)
"""By section, what is a whole number where it is stated."""


def check_stated(case: Case) -> None:
    """Raises UnscorableError for the first stated value that means nothing we know."""
    for name, keys in WHOLE:
        section: Section = getattr(case, name)
        for key in keys:
            if not _is_whole(section.values.get(key)):
                raise UnscorableError(f"{name} {key} {section.values[key]} not a whole number")
    parallel = case.parallel.values
    if not is_known_recompute(parallel.get("recompute")):
        raise UnscorableError(f"recompute {parallel['recompute']} not known")
    if not is_known_schedule(parallel.get("schedule")):
        raise UnscorableError(f"schedule {parallel['schedule']} not known")
    if isinstance(parallel.get("zero"), int | float) and parallel["zero"] not in (0, 1, 2, 3):
        raise UnscorableError(f"zero {parallel['zero']} not known")
    utilisation = case.measured.number("mfu")
    if utilisation is not None and not 0 < utilisation <= 1:
        raise UnscorableError(f"measured mfu {utilisation:g} not between 0 and 1")


def _is_whole(value: object) -> bool:
    """Whether this is a whole number of at least 0, or nothing."""
    if value is None:
        return True
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value >= 0 and value % 1 == 0


def is_known_recompute(value: object) -> bool:
    """Whether this says what is recomputed, as one text or as a list of parts, or is not stated."""
    if value is None:
        return True
    if isinstance(value, list):
        return all(part in MODULES for part in cast("list[object]", value))
    words = re.findall(r"[a-z0-9_]+", value.lower()) if isinstance(value, str) else ["?"]
    return not words or words[0] in MODES or all(word in MODULES for word in words)
