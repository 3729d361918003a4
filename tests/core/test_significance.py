"""The p-values that the statistical tests rest on."""

from __future__ import annotations

import pytest

from significance import ALPHA, binomial_p, bonferroni, chi_square_p, two_sample_z_p


def test_many_comparisons_share_the_level() -> None:
    assert bonferroni(1) == ALPHA
    assert bonferroni(1000) == pytest.approx(ALPHA / 1000)


def test_binomial_p_is_exact_and_two_sided() -> None:
    assert binomial_p(0, 10, 0.5) == pytest.approx(2 / 1024)
    assert binomial_p(5, 10, 0.5) == pytest.approx(1)


def test_chi_square_p_matches_a_tabulated_value() -> None:
    assert chi_square_p([10, 20], [15, 15]) == pytest.approx(0.0679, abs=1e-4)  # statistic 10/3, 1 df


def test_chi_square_p_refuses_what_is_not_chi_square() -> None:
    with pytest.raises(ValueError, match="merge cells"):
        chi_square_p([1, 1], [1, 1])
    with pytest.raises(ValueError, match="merge cells"):
        chi_square_p([10, 20], [15, 16])


def test_two_sample_z_p_takes_both_errors() -> None:
    assert two_sample_z_p(1.0, 3.0, 1.0 + 1.959964 * 5, 4.0) == pytest.approx(0.05, abs=1e-6)
    assert two_sample_z_p(1.0, 0.0, 1.0, 0.0) == 1
    assert two_sample_z_p(1.0, 0.0, 2.0, 0.0) == 0
