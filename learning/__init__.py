"""What is learned, from which data and how: all that a trainer needs, whether it is `training` or T5X."""
