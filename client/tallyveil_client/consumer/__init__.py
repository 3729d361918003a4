"""Reading statistics: releases fetched from an aggregator, believed only once verified.

Not here: verification itself (`tallyveil.release`), which needs nobody's server.
"""

from __future__ import annotations

from tallyveil_client.consumer.statistics import ReleaseSummary, Statistics

__all__ = ["ReleaseSummary", "Statistics"]
