"""Clocks, comparisons in one run, rooflines, recorded runs."""
