"""Benchmarks over any encoder (texts to vectors), and their tables."""
