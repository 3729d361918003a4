"""Derived statistics: sums over ranges, means and quantiles of an estimate, each with its own error.

Not here: the estimate itself (`tallyveil.mechanisms.estimate`), and columns that trade bias for error
(`tallyveil.second_columns`). A total by department or by cell is the same function of another estimate.
"""

from tallyveil.derived.linear import LinearStatistics, linear
from tallyveil.derived.means import mean, points_of
from tallyveil.derived.quantiles import Quantile, quantile
from tallyveil.derived.ranges import range_total
from tallyveil.derived.statistic import Statistic

__all__ = ["LinearStatistics", "Quantile", "Statistic", "linear", "mean", "points_of", "quantile", "range_total"]
