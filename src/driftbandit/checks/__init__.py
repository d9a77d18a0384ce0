"""The contract of policies, environments and families as checks, for ours and for yours.

>>> from driftbandit import DOMD, Problem
>>> from driftbandit.checks import check_policy
>>> check_policy(DOMD(problem=Problem(dim=3)))
"""

from driftbandit.checks.environments import check_environment, environment_checks
from driftbandit.checks.families import check_family, family_checks
from driftbandit.checks.policies import check_policy, policy_checks

__all__ = [
    "check_environment",
    "check_family",
    "check_policy",
    "environment_checks",
    "family_checks",
    "policy_checks",
]
