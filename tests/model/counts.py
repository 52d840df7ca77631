"""Parameter counts taken from elsewhere: the second opinion for every bundled config."""

import json
from pathlib import Path
from typing import Any

COUNTS: dict[str, dict[str, Any]] = json.loads(
    (Path(__file__).parent / "exact_counts.json").read_text(encoding="utf-8")
)
"""For each model: total, and where known expert, embedding, component (exact) and active."""
