"""Diagnostics for people to look at: neighbors, similarities, geometry, attention, redundancy, a map.

Pure functions of articles and their embeddings; ``studies.diagnose`` combines them into a report.
"""
