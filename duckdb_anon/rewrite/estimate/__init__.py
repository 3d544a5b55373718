"""Expectations: conditions and amounts as sums of products over parts, and the steps that compute them."""
