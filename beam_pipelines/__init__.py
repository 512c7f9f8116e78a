"""The mining jobs, one file (or folder) each, over the stream records of ``records.py``."""
