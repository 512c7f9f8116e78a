"""The text of a page that the tests of `extract` read."""

SENTENCE = (
    "The council of the river town voted late on Tuesday to raise the embankment "
    "before the autumn rains arrive, it said. "
)
PARAGRAPHS = [f"{SENTENCE}Paragraph {number}." for number in range(6)]
BODY = "".join(f"<p>{text}</p>" for text in PARAGRAPHS)
