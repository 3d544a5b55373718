"""Differential privacy: mechanisms, their budget, and generalization by private specializations."""
