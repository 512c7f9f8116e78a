"""The benchmarks, each module one file to add: its docstring is the protocol, its ``SUITES`` the names."""
