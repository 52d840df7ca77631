"""Predicted against measured step times, one picture for each architecture of chips."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from benchmarks.accuracy_page.time_tables import Findings

LEAST_ROWS = 10
"""Architectures with fewer rows share a picture."""

OTHERS = "others"
VIEW = "known stack"
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
MARKERS = "os^Dv"

Point = tuple[str, bool, float, float]
"""Stack, whether tuned, measured and predicted seconds."""


def plots(findings: Findings, folder: Path) -> list[Path]:
    """Writes them; the same findings give the same bytes under one version of matplotlib."""
    folder.mkdir(parents=True, exist_ok=True)
    found = grouped(findings)
    return [plot(name, found[name], folder / f"{name}.png") for name in sorted(found)]


def grouped(findings: Findings) -> dict[str, list[Point]]:
    """The held-out rows of known stacks, by architecture."""
    by_architecture: dict[str, list[Point]] = defaultdict(list)
    predictions = findings[VIEW]["predictions"]
    for row in findings["as shipped"]["facts"]:
        if row["id"] in predictions and "time" in row["errors"]:
            seconds = row["measured_s"], predictions[row["id"]][0]
            by_architecture[row["architecture"] or OTHERS].append(
                (row["stack"], row["tuned"], *seconds)
            )
    found: dict[str, list[Point]] = defaultdict(list)
    for name, points in by_architecture.items():
        found[name if len(points) >= LEAST_ROWS else OTHERS] += points
    return dict(found)


def plot(name: str, points: Sequence[Point], path: Path) -> Path:
    """One picture: tuned rows filled, the others hollow; the lines are 0 and ±20 %."""
    figure = Figure(figsize=(6.0, 4.6), dpi=100, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    seconds = [value for point in points for value in point[2:]]
    ends = [0.7 * min(seconds), 1.4 * max(seconds)]
    for factor, style in ((1.0, "-"), (1.2, ":"), (1 / 1.2, ":")):
        axes.plot(ends, [factor * end for end in ends], style, color="#888888", linewidth=0.8)
    for i, stack in enumerate(sorted({point[0] for point in points})):
        own = [point for point in points if point[0] == stack]
        colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i // len(COLOURS) % len(MARKERS)]
        measured, predicted = [p[2] for p in own], [p[3] for p in own]
        faces = [colour if p[1] else "none" for p in own]
        axes.scatter(
            measured, predicted, s=14, marker=marker, facecolors=faces, edgecolors=colour, lw=0.6
        )
        axes.scatter([], [], s=14, marker=marker, color=colour, label=f"{stack} ({len(own)})")
    axes.set(xscale="log", yscale="log", xlabel="measured, s", ylabel="predicted, s")
    axes.set(xlim=ends, ylim=ends, title=f"{name}: step times, known stack")
    axes.legend(fontsize=7, loc="upper left")
    figure.savefig(path, metadata={"Software": None})
    return path
