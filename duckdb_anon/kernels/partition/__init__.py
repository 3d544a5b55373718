"""Partition kernels: arrays of codes in, group of each row out."""
