"""Second columns: estimates that give up being unbiased for less error, published beside the raw column, never for it.

Not here: the raw column (`tallyveil.mechanisms.estimate`), which every one of these starts from and leaves as it is.
"""

from tallyveil.second_columns.bootstrap import Bootstrap, Stratum, bootstrap
from tallyveil.second_columns.em import Fit, em, em_column, keeps_histogram
from tallyveil.second_columns.norm_sub import norm_sub, norm_sub_column

__all__ = [
    "Bootstrap",
    "Fit",
    "Stratum",
    "bootstrap",
    "em",
    "em_column",
    "keeps_histogram",
    "norm_sub",
    "norm_sub_column",
]
