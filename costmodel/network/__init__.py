"""What moves between chips and how long it takes: groups, collectives, sums, hand-overs."""
