"""Training goes on from the model of an archive, and the outcome is compared with that model (``update --train``).

``conduct`` has the steps, ``trial`` the comparison and the rule, ``options`` what the command line offers.
"""
