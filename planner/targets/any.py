"""Everything that the layout language says: what the best executor could run."""

from planner.targets.target import Target

TARGET = Target(name="any", title="every legal layout")
