"""A campaign of random tables and calls, whose guarantees are proved again by code of its own.

By hand, as long as wished: `python -m tests.fuzz.campaign --calls 10000 --seed 1`.
"""
