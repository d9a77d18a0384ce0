"""Whether the tests would notice: every small change to the theory and the kernels must fail one.

`make mutants`, or `python -m benchmarks.mutants theory` for one group. A change that no test can
notice stands in `equivalent.py` with its reason; any other survivor is a failure.
"""
