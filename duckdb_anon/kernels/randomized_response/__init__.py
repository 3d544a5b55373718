"""Algebra of randomized response (Guo, Ying and Wu 2011): channels, risk, optimal parameters, reconstruction."""
