"""What people look at beside the scores: neighbors, similarities of pairs, alignment and uniformity, attention, redundancy, a map.

Pure functions over articles and their embeddings; ``studies.diagnose`` puts them together and writes the report.
"""
