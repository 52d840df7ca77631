"""What a wrong cost model or one more node would change, as text."""

from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from service.cli.text.quantities import percent, seconds
from service.cli.text.tables import table

Document = dict[str, Any]


def robustness_text(found: Document) -> RenderableType:
    """Whether the winner stays one."""
    head = Text("If the cost model is wrong", style="bold")
    lines = (Padding(Text(line), (0, 0, 0, 2)) for line in robustness_lines(found))
    return Group(head, *lines, Text())


def robustness_lines(found: Document) -> list[str]:
    """Sentences."""
    if not found["rivals"]:
        return ["No layout of another kind fits, so no error can make one better."]
    verdict = "The choice stands" if found["survives"] else "The choice is open"
    said = (
        f"{verdict}: in {found['draws']} draws of errors of chips and links, which all layouts "
        f"share, the plan is the best of {found['rivals'] + 1} in "
        f"{percent(found['probability_best'])}; choosing it costs "
        f"{percent(found['expected_regret'])} on average."
    )
    lead = found["best_rival_relative"]
    than = "slower" if lead >= 0 else "faster than the plan; a longer search may find it"
    nearest = f"The nearest rival is predicted {percent(abs(lead))} {than}."
    return [said, nearest]


def node_values_text(values: list[Document]) -> RenderableType:
    """What one more node of each pool is worth."""
    rows = [
        (f"{value['nodes']} more in {value['pool']}", seconds(value["step_time_s"]), effect(value))
        for value in values
    ]
    return table("What more nodes would do", ("nodes", ">step time", ">effect"), rows)


def effect(value: Document) -> str:
    """The change of the step time."""
    return f"{100 * value['relative']:+.1f} %" if value["relative"] else "would stay idle"
