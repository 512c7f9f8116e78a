"""Studies: ablations, staleness, diagnosis, labelling and report pages, for people to look at."""
