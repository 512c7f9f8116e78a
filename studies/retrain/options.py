"""The options of a training on an archive."""

import dataclasses

from ...errors import InputError
from ...formats.command_line import option


@dataclasses.dataclass(frozen=True)
class RetrainOptions:
    """How training goes on, and when its outcome replaces what serves."""

    steps: int = option(40, "further steps")
    learning_rate: float = option(0.0, "peak learning rate; 0 takes a tenth of the one that the model was trained with")
    batch_size: int = option(0, "triplets in a step; 0 for as many as before, or as there are")
    held_out_days: int = option(14, "number of last days with articles that are the test; they are not trained on")
    mining_days: int = option(0, "mine only the articles of this many last days; 0 for all")
    least_new: int = option(500, "train when the archive has this many more articles than at the last training")
    least_events: int = option(20, "events that several publishers report which the test must have")
    tolerance: float = option(
        0.01, "the new model replaces the old one if it is not worse than by this mAP, with 97.5 % certainty"
    )
    gin: tuple[str, ...] = option((), "further values of the training, NAME=VALUE, joined by commas")

    def __post_init__(self) -> None:
        """Checks the values.

        Raises:
          InputError: naming the option with an invalid value.
        """
        for name, fits, expected in (
            ("steps", self.steps >= 1, "1 or more"),
            ("learning_rate", self.learning_rate >= 0, "0 or more"),
            ("batch_size", self.batch_size >= 0, "0 or more"),
            ("held_out_days", self.held_out_days >= 1, "1 or more"),
            (
                "mining_days",
                not self.mining_days or self.mining_days > self.held_out_days,
                "0, or more than are held out",
            ),
            ("least_new", self.least_new >= 0, "0 or more"),
            ("least_events", self.least_events >= 2, "2 or more"),
            ("tolerance", 0 <= self.tolerance <= 1, "0 to 1"),
            ("gin", all("=" in one for one in self.gin), "NAME=VALUE"),
        ):
            if not fits:
                problem = f"got {getattr(self, name)}, expected {expected}"
                raise InputError(problem, field=f"--train.{name}", remedy="see newsembed update --help")
