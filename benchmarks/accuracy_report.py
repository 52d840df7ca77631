"""Writes ``docs/accuracy.md`` and its pictures from findings.

    python benchmarks/accuracy_report.py FINDINGS.json [--ablation FILE] [-o PAGE]

FINDINGS: written by ``accuracy_protocols.py CASES... -o FINDINGS``. Nothing is fitted or predicted
here. The same findings give the same page.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.accuracy_page.page import write_page

PAGE = Path(__file__).parents[1] / "docs" / "accuracy.md"


def main() -> None:
    """Reads, fills, writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("findings", type=Path)
    parser.add_argument("--ablation", type=Path, help="written by accuracy_ablation.py")
    parser.add_argument("-o", "--output", type=Path, default=PAGE)
    options = parser.parse_args()
    removed = _read(options.ablation) if options.ablation else None
    write_page(_read(options.findings), removed, options.output)


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
