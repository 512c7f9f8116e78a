"""Benchmarks for any encoder (texts to vectors), and their tables."""
