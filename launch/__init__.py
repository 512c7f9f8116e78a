"""Command lines, the demo, and launchers for Dataflow and TPU pods; the only package that may import all others."""
