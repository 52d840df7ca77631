"""Makes ``docs/accuracy.md``: findings in JSON, and the page from them."""
