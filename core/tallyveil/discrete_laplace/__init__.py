"""Discrete Laplace noise: whole numbers x with probability in proportion to exp(−|x|/t), exactly.

Not here: sensitivities, and what the noise is added to.
"""

from tallyveil.discrete_laplace.law import half_width, probability, tail, variance, within
from tallyveil.discrete_laplace.sampler import draw
from tallyveil.discrete_laplace.scale import scale_for

__all__ = ["draw", "half_width", "probability", "scale_for", "tail", "variance", "within"]
