"""Benchmarks that print figures: `tallyveil bench`. Ratios of one run are what counts, not absolute times."""
