"""A short sample of the fuzzer of inputs (`make attack` tries more), and tests of the fuzzer itself."""

import random
from pathlib import Path

import fuzz
import mutators
import pytest
import targets

pytestmark = [
    pytest.mark.long,  # `make attack`
    pytest.mark.filterwarnings("ignore"),  # as in the command line
]


@pytest.fixture(scope="module")
def attack(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attack")
    (folder / "sources").mkdir()
    return fuzz.Attack(folder, targets.built(folder / "sources"))


def test_mutated_files_end_in_a_clear_error_or_are_counted_or_change_nothing(attack):
    done = [attack.one(*choice) for choice in fuzz.tries(attack.targets, len(attack.targets), seed=0)]  # one each
    assert {one.target for one in done} == {target.name for target in attack.targets}
    bad = [one for one in done if one.way in fuzz.BAD]
    assert not bad, "\n\n".join(f"{one.target}, {one.mutation}, seed {one.seed}\n{one.detail}" for one in bad)
    ways = {one.way for one in done}
    assert ways >= {"clear error", "counted"}, ways


def test_the_fuzzer_notices_what_no_command_may_do(attack, monkeypatch):
    target = next(target for target in attack.targets if target.name == "articles of an index")
    for ran, way in (
        (fuzz.Ran(None, "", "Traceback (most recent call last)"), "CRASHED"),
        (fuzz.Ran(2, "", "newsembed dedup: error: something"), "UNCLEAR"),
        (fuzz.Ran(2, "", "error: {place}/index: no readable archive"), "clear error"),
    ):

        def answer(command, ran=ran):
            place = Path(command[2]).parent
            return fuzz.Ran(ran.code, ran.out, ran.err.format(place=place))

        attack.expected(target)
        with monkeypatch.context() as patch:
            patch.setattr(fuzz, "run", answer)
            assert attack.one(target, "flipped", 1).way == way

    def other(command):
        Path(command[-1]).mkdir(parents=True)
        Path(command[-1], "a").write_text("other")
        return fuzz.Ran(0, "", "")

    monkeypatch.setattr(fuzz, "run", other)
    assert attack.one(target, "flipped", 1).way == "SILENT"
    unguarded = next(target for target in attack.targets if target.name == "digests of an index")
    attack._expected[unguarded.name] = "another"
    assert attack.one(unguarded, "truncated", 1).way in ("another input", "SILENT")


def test_mutations_are_repeated_by_their_seed_and_change_something():
    raw = b'{"format_version": 1, "id": "a", "values": [1.5, 2]}\n{"id": "b", "day": "2021-03-01"}\n' * 9
    for mutation in mutators.TEXT.values():
        once, again = (mutation(raw, random.Random(3)) for _ in range(2))
        assert once == again
        assert any(mutation(raw, random.Random(seed)) != raw for seed in range(3))
        mutation(b"", random.Random(0))  # an empty file has no place to change


def test_all_mutations_of_all_targets_are_tried_in_turn(attack):
    count = len(attack.targets) * len(mutators.TEXT)
    tried = [(target.name, mutation) for target, mutation, _ in fuzz.tries(attack.targets, count, seed=5)]
    assert set(tried) == {(target.name, mutation) for target in attack.targets for mutation in target.mutations}
    assert len({seed for _, _, seed in fuzz.tries(attack.targets, count, seed=5)}) == count
