"""Algebra of randomized response: channels, risk, optimal parameters, reconstruction.

Everything here is array arithmetic on contingency tables and codes; nothing knows about SQL.
Paper: Guo, Ying and Wu, "Limiting Attribute Disclosure in Randomization Based Microdata Release" (2011).
"""
