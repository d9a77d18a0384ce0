"""Table 1 of the paper from the code, extended by the rivals that are not in it.

Costs and memories are per round, as functions of the round t; d, P_T, Gamma_T, T and c = c_mu as in
the paper, logarithms left out of the regret.
"""

from __future__ import annotations

from typing import NamedTuple

from driftbandit.policies.auto import AutoDOMD
from driftbandit.policies.base import Policy
from driftbandit.policies.baselines import Oracle, Uniform
from driftbandit.policies.bob import BOBDOMD
from driftbandit.policies.dal import DAL
from driftbandit.policies.domd import DOMD, GLBOMD, Greedy
from driftbandit.policies.dynamic import DynamicLinUCB
from driftbandit.policies.glm import (
    BVDGLMUCB,
    DGLMTS,
    DGLUCB,
    GLMUCB,
    SCDGLUCB,
    SCSWGLUCB,
    SWGLMTS,
    SWGLUCB,
    GLBWeightUCB,
    RestartGLB,
    SCBPWWeightUCB,
    SCBWeightUCB,
)
from driftbandit.policies.gloc import GLOC
from driftbandit.policies.ids import IDS
from driftbandit.policies.larl import LARL
from driftbandit.policies.linear import (
    DLinTS,
    DLinUCB,
    DRandLinUCB,
    LBWeightUCB,
    LinUCB,
    SWLinUCB,
    WSBLinTS,
    WSBLinUCB,
    WSBRandLinUCB,
)
from driftbandit.policies.master import MASTER
from driftbandit.policies.variance import RestartedSAVE, RestartedWeightedOFUL


class Entry(NamedTuple):
    """One line of the table."""

    policy: type[Policy]
    paper: str
    method: str
    assumes: str  # its theorem, of rewards; bounded ones are self-concordant (Proposition 1)
    needs: str  # to know beforehand, besides d, the family and S
    cost: str
    memory: str
    regret: str


BOUNDED, NOISE = "bounded rewards", "sub-Gaussian noise"
CONCORDANT = "bounded and self-concordant rewards"
OBLIVIOUS = "bounded rewards; arms and theta fixed in advance"
DRIFT, JUMPS, STILL = "drift: ", "jumps: ", "stationary: "
CATALOGUE = (
    Entry(
        DOMD,
        "Lee, Oh 2026",
        "discounted mirror descent",
        BOUNDED,
        "T, P_T or Gamma_T; or a half-life",
        "O(1)",
        "O(1)",
        "drift: c^-1/2 d^3/4 P^1/4 T^3/4; jumps: c^-1/3 d^2/3 Gamma^1/3 T^2/3",
    ),
    Entry(
        AutoDOMD,
        "this library",
        "mixture of discounted mirror descents",
        "-",
        "nothing",
        "O(1)",
        "O(1)",
        "no theorem",
    ),
    Entry(
        BOBDOMD,
        "this library",
        "EXP3 over restarted, discounted mirror descents",
        OBLIVIOUS,
        "T",
        "O(1)",
        "O(1)",
        "c^-1/2 d^1/2 T^3/4, and on top DOMD's for drift or for jumps",
    ),
    Entry(
        GLBOMD,
        "Zhang, Xu, Zhao, Sugiyama 2025",
        "mirror descent",
        BOUNDED,
        "nothing",
        "O(1)",
        "O(1)",
        STILL + "d sqrt(T / kappa*)",
    ),
    Entry(
        GLOC,
        "Jun, Bhargava, Nowak, Willett 2017",
        "online Newton",
        NOISE,
        "nothing",
        "O(1)",
        "O(1)",
        STILL + "c^-1 d sqrt(T)",
    ),
    Entry(
        GLMUCB,
        "Filippi, Cappe, Garivier, Szepesvari 2010",
        "MLE",
        BOUNDED,
        "nothing",
        "O(t), no poly-time guarantee",
        "O(t)",
        STILL + "c^-1 d sqrt(T)",
    ),
    Entry(
        RestartGLB,
        "Zhao, Zhang, Jiang, Zhou 2020",
        "restart + MLE",
        NOISE,
        "T, P_T",
        "O(T^2/3)",
        "O(T^2/3)",
        DRIFT + "c^-1 d^2/3 P^1/3 T^2/3 (claimed)",
    ),
    Entry(
        MASTER,
        "Wei, Luo 2021",
        "restart + MLE",
        BOUNDED,
        "T",
        "O(t), no poly-time guarantee",
        "O(t log t)",
        "drift: c^-1 d P^1/3 T^2/3; jumps: c^-1 d sqrt(Gamma T)",
    ),
    Entry(
        BVDGLMUCB,
        "Faury, Russac, Abeille, Calauzenes 2021",
        "discount + MLE",
        BOUNDED,
        "T, P_T",
        "O(t), no poly-time guarantee",
        "O(t)",
        DRIFT + "c^-1 d^9/10 P^1/5 T^4/5",
    ),
    Entry(
        GLBWeightUCB,
        "Wang, Zhao, Zhou 2023",
        "discount + MLE",
        NOISE,
        "T, P_T",
        "O(t), no poly-time guarantee",
        "O(t)",
        DRIFT + "c^-3/4 d^3/4 P^1/4 T^3/4",
    ),
    Entry(
        SCBWeightUCB,
        "Wang, Zhao, Zhou 2023",
        "discount + MLE",
        CONCORDANT,
        "T, P_T",
        "O(t), no poly-time guarantee",
        "O(t)",
        DRIFT + "c^-1/2 d^3/4 P^1/4 T^3/4",
    ),
    Entry(
        DGLUCB,
        "Russac, Cappe, Garivier 2020",
        "discount + MLE",
        BOUNDED,
        "T, Gamma_T",
        "O(t), no poly-time guarantee",
        "O(t)",
        JUMPS + "c^-1 d^2/3 Gamma^1/3 T^2/3",
    ),
    Entry(
        SWGLUCB,
        "Russac, Cappe, Garivier 2020",
        "window + MLE",
        BOUNDED,
        "T, Gamma_T",
        "O(T^2/3), no poly-time guarantee",
        "O(T^2/3)",
        JUMPS + "c^-1 d^2/3 Gamma^1/3 T^2/3",
    ),
    Entry(
        SCDGLUCB,
        "Russac, Faury, Cappe, Garivier 2021",
        "discount + MLE",
        CONCORDANT,
        "T, Gamma_T",
        "O(t)",
        "O(t)",
        JUMPS + "c^-1/3 d^2/3 Gamma^1/3 T^2/3",
    ),
    Entry(
        SCSWGLUCB,
        "Russac, Faury, Cappe, Garivier 2021",
        "window + MLE",
        CONCORDANT,
        "T, Gamma_T",
        "O(T^2/3)",
        "O(T^2/3)",
        JUMPS + "c^-1/3 d^2/3 Gamma^1/3 T^2/3",
    ),
    Entry(
        SCBPWWeightUCB,
        "Wang, Zhao, Zhou 2023",
        "discount + MLE",
        CONCORDANT,
        "T, Gamma_T",
        "O(t), no poly-time guarantee",
        "O(t)",
        JUMPS + "d^2/3 Gamma^1/3 T^2/3",
    ),
    Entry(
        LinUCB,
        "Abbasi-Yadkori, Pal, Szepesvari 2011",
        "ridge regression",
        NOISE,
        "nothing",
        "O(1)",
        "O(1)",
        STILL + "d sqrt(T), linear",
    ),
    Entry(
        LBWeightUCB,
        "Wang, Zhao, Zhou 2023",
        "discounted ridge",
        NOISE,
        "T, P_T",
        "O(1)",
        "O(1)",
        DRIFT + "d^3/4 P^1/4 T^3/4, linear",
    ),
    Entry(
        DLinUCB,
        "Russac, Vernade, Cappe 2019",
        "discounted ridge",
        NOISE,
        "T, P_T",
        "O(1)",
        "O(1)",
        DRIFT + "d^3/4 P^1/4 T^3/4, linear (corrected)",
    ),
    Entry(
        SWLinUCB,
        "Cheung, Simchi-Levi, Zhu 2019",
        "windowed ridge",
        NOISE,
        "T, P_T",
        "O(1)",
        "O(T^2/3)",
        DRIFT + "d^7/8 P^1/4 T^3/4, linear (corrected)",
    ),
    Entry(
        DLinTS,
        "Kim, Tewari 2020",
        "discounted ridge, sampled",
        NOISE,
        "T, P_T",
        "O(1)",
        "O(1)",
        DRIFT + "d^7/8 P^1/4 T^3/4 sqrt(log K), linear (corrected)",
    ),
    Entry(
        DRandLinUCB,
        "Kim, Tewari 2020",
        "discounted ridge, random bonus",
        NOISE,
        "T, P_T",
        "O(1)",
        "O(1)",
        DRIFT + "d^7/8 P^1/4 T^3/4, linear (corrected)",
    ),
    Entry(
        WSBLinUCB,
        "Werge, Wu, Akgul, Kandemir 2026",
        "discounted posterior",
        NOISE,
        "T, P_T",
        "O(1)",
        "O(1)",
        DRIFT + "d^3/4 P^1/4 T^3/4, linear",
    ),
    Entry(
        WSBLinTS,
        "Werge, Wu, Akgul, Kandemir 2026",
        "discounted posterior, sampled",
        NOISE,
        "T, P_T",
        "O(1)",
        "O(1)",
        DRIFT + "as its least-squares peers, linear",
    ),
    Entry(
        WSBRandLinUCB,
        "Werge, Wu, Akgul, Kandemir 2026",
        "discounted posterior, random bonus",
        NOISE,
        "T, P_T",
        "O(1)",
        "O(1)",
        DRIFT + "as its least-squares peers, linear",
    ),
    Entry(
        DGLMTS,
        "Kveton, Zaheer, Szepesvari, Li, Ghavamzadeh, Boutilier 2020",
        "discounted posterior, sampled",
        BOUNDED,
        "T, P_T or Gamma_T",
        "O(t)",
        "O(t)",
        "no theorem with a discount",
    ),
    Entry(
        SWGLMTS,
        "Kveton, Zaheer, Szepesvari, Li, Ghavamzadeh, Boutilier 2020",
        "windowed posterior, sampled",
        BOUNDED,
        "T, P_T or Gamma_T",
        "O(T^2/3)",
        "O(T^2/3)",
        "no theorem with a window",
    ),
    Entry(
        IDS,
        "Russo, Van Roy 2018",
        "discounted posterior, information-directed",
        BOUNDED,
        "T, P_T or Gamma_T",
        "O(t + N^2)",
        "O(t)",
        "no theorem with a discount",
    ),
    Entry(
        DAL,
        "Gerogiannis, Huang, Bose, Veeravalli 2025",
        "restart where a test says so + mirror descent",
        NOISE,
        "T",
        "O(sqrt(T)) in few rounds, else O(1)",
        "O(sqrt(T))",
        JUMPS + "d sqrt(Gamma T) over an optimal base",
    ),
    Entry(
        RestartedWeightedOFUL,
        "Wang, Xie, Chen, Lui, Zhou 2025",
        "restart + ridge weighted by variance",
        BOUNDED,
        "T, P_T",
        "O(1)",
        "O(1)",
        DRIFT + "d^7/8 (P V)^1/4 T^1/2 + d^5/6 P^1/3 T^2/3, V total variance, linear",
    ),
    Entry(
        RestartedSAVE,
        "Wang, Xie, Chen, Lui, Zhou 2025",
        "restart + layers of weighted ridge",
        BOUNDED,
        "T, P_T",
        "O(1)",
        "O(1)",
        DRIFT + "d^4/5 V^2/5 P^1/5 T^2/5 + d^2/3 P^1/3 T^2/3, V total variance, linear",
    ),
    Entry(
        DynamicLinUCB,
        "Wu, Iyer, Wang 2018",
        "ridge regressions that come and go",
        NOISE,
        "nothing",
        "O(1) for each model",
        "O(1) for each model",
        JUMPS + "Gamma sqrt(T / Gamma), if changes are far apart and large, linear",
    ),
    Entry(
        LARL,
        "Trella, Dempsey, Gazi, Xu, Doshi-Velez, Murphy 2025",
        "ridge regression on arms and latest rounds",
        "Gaussian noise; a hidden autoregressive state",
        "the order of the state",
        "O(1)",
        "O(1)",
        "sublinear if the state has little noise",
    ),
    Entry(Greedy, "-", "mirror descent, no bonus", "-", "a half-life", "O(1)", "O(1)", "T"),
    Entry(Uniform, "-", "chance", "-", "nothing", "O(1)", "O(1)", "T"),
    Entry(Oracle, "-", "told theta_t", "-", "everything", "O(1)", "O(1)", "0"),
)
