"""Capital and bounds of confseq's gamma-exponential mixture, as JSON: run in its own environment.

confseq takes the variance for which a mixture is best, and finds rho from that.
"""

from __future__ import annotations

import json
import math

from confseq.boundaries import gamma_exponential_log_mixture, gamma_exponential_mixture_bound

from benchmarks.oracles.inputs import BOUNDS, MOMENTS, RHO

ALPHA = 0.05  # at which it is best; any would do
TWICE = math.log(1.0 / (2.0 * ALPHA))
BEST = RHO * (2.0 * TWICE + math.log(1.0 + 2.0 * TWICE))

if __name__ == "__main__":
    capital = [gamma_exponential_log_mixture(S, V, BEST, 1.0, ALPHA) for S, V in MOMENTS]
    bounds = [gamma_exponential_mixture_bound(V, alpha, BEST, 1.0, ALPHA) for V, alpha in BOUNDS]
    print(json.dumps({"log capital": capital, "bound": bounds}))
