"""The mining jobs, one module or package each, over the stream records of ``formats/records.py``."""
