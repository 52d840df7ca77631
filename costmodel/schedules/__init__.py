"""Pipeline schedules, one file each, found by walking this package (``registry``)."""
