"""What a person reads at each figure and table, in English and in Chinese.

Not here: numbers. The names of guarantees come from `tallyveil.guarantee`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tallyveil.guarantee import KIND_AT_DEPARTMENT, KIND_LDP, KIND_WITHIN_BIN
from tallyveil_reproduce.populations import FORMULAS
from tallyveil_reproduce.trials import Trial


@dataclass(frozen=True)
class Words:
    """The same said twice."""

    english: str
    chinese: str


TITLES: dict[int, Words] = {
    2: Words("Frequencies before and after, Zipf and normal, GRR", "Zipf 与正态分布：GRR 处理前后的频数"),
    3: Words("The sparse ends of figure 2, enlarged", "图 2 稀疏部分的放大"),
    4: Words("Frequencies before and after, BRR with 8 bins", "BRR（fxs=8）处理前后的频数"),
    5: Words("High-income heads by age", "高收入家庭户主年龄分布"),
    6: Words("Error of each age", "各年龄统计量的误差"),
    7: Words("Error against the number of bins", "分箱数对误差的影响"),
    8: Words("Error against the number of records", "数据规模对误差的影响"),
    9: Words("Error against epsilon, 8 bins", "隐私预算对误差的影响（fxs=8）"),
    10: Words("Error against epsilon, 4, 8 and 16 bins", "相同隐私预算下分箱数的影响（fxs=4、8、16）"),
    11: Words("Error against the size of the domain, 8 bins", "数据域大小对误差的影响（fxs=8）"),
}

_WHAT: dict[int, Words] = {
    2: Words(
        "100,000 records, 100 values, ε = 2. Grey: the truth. Dots: one run. Bars: mean ± one standard deviation of a "
        "run. Where values are rare, GRR's error is far larger than the count, and many estimates are negative.",
        "10 万条记录，100 个取值，ε=2。灰色为真实频数，圆点为一次运行，误差线为均值 ± 单次运行的标准差。取值稀少处，"
        "GRR 的误差远大于频数本身，且多有负估计。",
    ),
    3: Words(
        "The same runs as figure 2: the right half of Zipf and both ends of the normal distribution.",
        "与图 2 为同一批运行：Zipf 分布右半部分与正态分布两端。",
    ),
    4: Words(
        "As figure 2 with BRR, fxs = 8. The paper's text names the geometric and the uniform distribution, its panel "
        "Zipf: all four are here.",
        "同图 2，改用 BRR（fxs=8）。论文正文称几何与均匀分布，分图题为 Zipf，此处四种分布都给出。",
    ),
    5: Words(
        "16,685 heads of high-income households by age, 15 to 99 (85 values; FIES 2015), ε = 2; BRR with fxs = 16.",
        "16,685 名高收入家庭户主的年龄（15～99 岁，85 个取值；FIES 2015），ε=2；BRR 取 fxs=16。",
    ),
    6: Words(
        "Mean over the repeats of |estimate − truth| / truth at each age, ε = 2, on a logarithmic scale; bars: one "
        "standard deviation of a run. The ages 15, 17, 89, 96 and 98 have 2, 4, 5, 3 and 4 heads.",
        "各年龄 |估计 − 真值| / 真值 的多次平均，ε=2，对数坐标；误差线为单次运行的标准差。"
        "15、17、89、96、98 岁分别只有 2、4、5、3、4 人。",
    ),
    7: Words(
        "ε = 2. Left: MAPE against fxs. Right: the error of each age for some fxs; errors of exactly 0 have no place "
        "on a logarithmic scale. Crosses: some bins hold one value only, which is then in clear and exact. These "
        "points are DISCLOSING: simulated here, refused by every survey.",
        "ε=2。左：MAPE 随 fxs 的变化；右：若干 fxs 下各年龄的误差，恰为 0 者无法显示在对数坐标上。"
        "叉号表示有的箱只含一个取值，该值即以明文给出、毫无误差：这些点会泄露隐私，仅作模拟，任何调查都不允许这样设置。",
    ),
    8: Words(
        "Every record of FIES 1, 4, 8, 12, 16 and 20 times, ε = 2; BRR with fxs = 16. Both scales are logarithmic.",
        "FIES 的每条记录重复 1、4、8、12、16、20 次，ε=2；BRR 取 fxs=16。双对数坐标。",
    ),
    9: Words(
        "FIES; BRR with fxs = 8, ε from 0.1 to 5. GRR at the same ε errs more everywhere.",
        "FIES；BRR 取 fxs=8，ε 从 0.1 到 5。相同 ε 下 GRR 的误差处处更大。",
    ),
    10: Words(
        "FIES; BRR with fxs = 4, 8 and 16, ε from 0.1 to 5: more bins, smaller error, and more disclosed.",
        "FIES；BRR 取 fxs=4、8、16，ε 从 0.1 到 5：箱越多，误差越小，公开的也越多。",
    ),
    11: Words(
        "100,000 records over K values, ε = 2; BRR with fxs = 8. Both scales are logarithmic.",
        "10 万条记录分布在 K 个取值上，ε=2；BRR 取 fxs=8。双对数坐标。",
    ),
}

GUARANTEES: dict[str, Words] = {
    "brr": Words(
        f"BRR: {KIND_WITHIN_BIN}. It protects a value within its bin only and sends the bin in clear; with one bin it "
        "is GRR.",
        "BRR：仅在箱内满足 ε-LDP，箱号以明文公开，箱与箱之间没有任何保护；fxs=1 时即 GRR。",
    ),
    "grr": Words(f"GRR: {KIND_LDP} over all values.", "GRR：对全部取值满足 ε-LDP。"),
    "ss": Words(
        f"SS (subset selection): {KIND_LDP} over all values, with the least error of its kind.",
        "SS（子集选择）：对全部取值满足 ε-LDP，同类无偏方法中误差最小。",
    ),
    "brr-sealed": Words(
        f"BRR sealed: {KIND_LDP} over all values, the bin perturbed too.",
        "BRR sealed：箱号也加扰动，对全部取值满足 ε-LDP。",
    ),
    "histogram-laplace": Words(
        f"Noise at the department: {KIND_AT_DEPARTMENT}. Discrete Laplace noise for sensitivity 2 (one record "
        "replaced) on each department's own histogram, once; the department itself sees every record anyway.",
        "部门端加噪：ε-DP。各部门对自己的直方图一次性加离散拉普拉斯噪声（敏感度 2，替换一条记录）；"
        "部门本来就持有全部记录。",
    ),
}
"""What each series protects."""

READING = Words(
    "MAPE is the mean of |estimate − truth| / truth over the values whose true count is above 0, as a fraction (0.2 is "
    "20 %), of the unbiased estimates as they are, negative ones included. Means and standard deviations are over "
    "repeats with fresh secure coins, so they differ from run to run within the printed deviation; 'expected' is the "
    "mean over all draws there may be, computed from the mechanism's exact law without a draw (for BRR sealed from the "
    "exact variance, taking errors for normal).",
    "MAPE 为真实频数大于 0 的各取值上 |估计 − 真值| / 真值 的平均，以小数表示（0.2 即 20 %），"
    "使用原始无偏估计，包括负值。"
    "均值与标准差来自多次运行，每次使用新的安全随机数，因此每次运行的数字会在标准差范围内变化；“期望”不经抽样，"
    "由机制的精确分布计算得出（BRR sealed 由精确方差按正态近似）。",
)

_SHAPES = ", ".join(f"{shape}: {formula}" for shape, formula in FORMULAS.items())

DATA = Words(
    "FIES: the shipped counts of heads by age and office, from the Family Income and Expenditure Survey 2015 of the "
    "Philippine Statistics Authority; 17 offices, each of which adds its own noise where noise is added at the "
    "department. Made-up populations: 100,000 records of one department, expected counts rounded, in proportion to "
    f"({_SHAPES}), v = 0..K−1. The paper does not state its parameters.",
    "FIES：随软件提供的户主年龄与地区计数，来自菲律宾统计局 2015 年家庭收支调查，共 17 个地区办公室；"
    "在部门端加噪时各自加噪。"
    f"仿真数据：一个部门的 10 万条记录，由期望频数取整得到，正比于（{_SHAPES}），v = 0..K−1。论文未给出其参数。",
)

TABLE_1 = Words(
    "Numeric note, one answer: true answer 3000, sensitivity 1, ε = 1. In how many of 100 noisy answers the error is "
    "at most 5. The note saw 99 of 100.",
    "数值型笔记·一维：真实结果 3000，敏感度 1，ε=1。100 次带噪回答中误差不超过 5 的次数。原文为 100 次中 99 次。",
)
TABLE_2 = Words(
    "Numeric note, two answers of different magnitude: 3000 and 10 under one sensitivity of 5, ε = 1, 1,000 draws. "
    "The noise is the same; relative to 10 it makes the answer useless.",
    "数值型笔记·二维：3000 与 10 共用敏感度 5，ε=1，抽样 1000 次。噪声相同，但相对于 10 已使结果失去意义。",
)


def caption(number: int, trials: Iterable[Trial]) -> Words:
    """What the figure shows; and where BRR is in it, that it protects within a bin only."""
    what = _WHAT[number]
    if not any(trial.mechanism == "brr" for trial in trials):
        return what
    return Words(f"{what.english} {GUARANTEES['brr'].english}", what.chinese + GUARANTEES["brr"].chinese)
