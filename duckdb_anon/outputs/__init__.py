"""Answers from the original that are safe to let out: rules, secondary suppression, the ledger of answers."""
