r"""The tables of the papers: the printed rows, then encoders on the same benchmarks.

A table is named by its paper and number (newsembed-3), a paper by its name: newsembed (Liu et al. 2021), simlte, okura,
thesis (Li 2021: LASER, T-MDE), ast (Danovitch 2020). --data is a folder with benchmarks as distributed; --check says
what the tables need and what is there. A column that cannot be run shows its printed values, and a note says why.

--finetuned DIR adds the models that `newsembed finetune` trained to newsembed-2 and newsembed-9.

--train DIR adds ours to newsembed-10 and newsembed-11: DIR/ablate and DIR/staleness, as `newsembed ablate` and
`newsembed staleness` write them. One that is not there is trained on a generated newsroom, for up to half an hour.

example:
  newsembed tables --check --data benchmarks
  newsembed tables newsembed-3 newsembed-8 --encoder tfidf=tfidf --encoder ours=model:lifted/model \
      --data benchmarks --output tables
  newsembed tables newsembed          # the printed rows alone
  newsembed tables newsembed-10 newsembed-11 --train work/studies
"""

import dataclasses
import os
from typing import Final

from .. import serving
from ..errors import InputError, counted
from ..evaluation.command import encoder_factory, encoder_specs, tell
from ..evaluation.statistics import Interval
from ..evaluation.suites import read_results, run_suites
from ..evaluation.table import Table
from ..evaluation.tables import FORMATS, chosen_tables, filled, joined, lacking, needed, sources, text_of
from ..formats import files
from ..formats.command_line import Options, option, several
from ..formats.files import check_output, write_whole
from ..formats.remote import uploaded
from ..studies.shared.pages import Part, page, with_interval


@dataclasses.dataclass(frozen=True, kw_only=True)
class TablesOptions(Options):
    """Options of ``newsembed tables``."""

    names: tuple[str, ...] = option((), "tables or papers (default: all)", positional=True, many=True, metavar="NAME")
    encoder: tuple[str, ...] = several("an encoder, see newsembed evaluate; repeat for more rows", "NAME=SPEC")
    data: str | None = option(None, "folder with benchmarks as distributed", metavar="DIR")
    output: str | None = option(
        None, f"folder for tables.{{{','.join(FORMATS)},html}} (default: print them)", metavar="DIR"
    )
    cache: str | None = option(None, "folder that keeps embeddings by content", metavar="DIR")
    train: str | None = option(None, "folder of the studies of Tables 10 and 11; trains those not there", metavar="DIR")
    finetuned: tuple[str, ...] = several("outputs of newsembed finetune, for the rows of Tables 2 and 9", "DIR")
    check: bool = option(False, "only say which data the tables need, and which are there")

    def __post_init__(self) -> None:
        """Checks that what is given goes together."""
        super().__post_init__()
        if self.encoder and self.data is None:
            raise InputError("missing", field="--data", remedy="name the folder with the benchmarks")
        if self.data and not (self.encoder or self.check):
            raise InputError("given without --encoder or --check", field="--data", remedy="give one of them")


OPTIONS = TablesOptions

# The commands of tables that are trained, the list of their results, the entry that a row shows, and the headings.
_PAPER_ROWS: Final = (
    "without_pretraining,mixed_batches,without_cross_device_negatives,without_translation,without_evergreen_filter,"
    "without_topics"
)
_STUDIES: Final = {
    "newsembed-10": (("ablate", "--rows", _PAPER_ROWS), "rows", ("row", "minus_full"), ("row", "z minus full")),
    "newsembed-11": (("staleness",), "cutoffs", ("cutoff", "staleness"), ("documents up to", "staleness in mAP")),
}


def _studied(name: str, folder: str) -> Table:
    """Ours of a table that is trained; trains it if the folder of its study has no results."""
    (command, *arguments), entry, (label, value), headings = _STUDIES[name]
    path = f"{folder}/{command}/table.json"
    if not os.path.exists(path):
        from .cli import main

        main([command, "--newsroom", "--output", f"{folder}/{command}", *arguments])
    numbers = files.read_json(path, f"do what `newsembed {command}` says; the same command then continues")
    groups = list(dict.fromkeys(group for row in numbers[entry] for group in row["by_language"]))
    rows = []
    for row in numbers[entry]:
        found = [row[value], *map(row["by_language"].get, groups)]
        gaps = [Interval(**gap.get("effect", gap)) if gap else None for gap in found]
        rows.append([row[label], *(with_interval(gap, "+.3f") for gap in gaps), row["verdict"]])
    note = f"{' '.join(numbers['command'])}, {numbers['written_at'][:10]}; not the paper's data. All numbers: {path}"
    return Table([*headings, *groups, "verdict"], rows, f"{name}, ours", [note])


def run(options: TablesOptions) -> int:
    """Runs the benchmarks of the tables, and writes or prints them; 1 if a benchmark failed."""
    tables = chosen_tables(options.names)
    benchmarks = needed(tables, options.data) if options.check or options.encoder else []
    if options.check:
        there = [(one.name, one.protocol, one.paths) for one in benchmarks]
        lines = [f"there: {name}: {paths[0]}" for name, _, paths in there]
        lines += [f"{table.name}: {note}" for table in tables for note in lacking(table, there)]
        print("\n".join([*lines, *dict.fromkeys(line for table in tables for line in sources(table, there))]))
        return 0
    if options.output:
        check_output(options.output, is_folder=True)
    found = list(map(read_results, options.finetuned))
    if options.encoder and benchmarks:
        factories, specs = serving.factories(), encoder_specs(options.encoder)
        encoders = {name: encoder_factory(spec, factories) for name, spec in specs.items()}
        found.append(run_suites(encoders, benchmarks, cache=options.cache, specs=specs, on_result=tell))
    results, made = joined(found), []
    for table in tables:
        made.append(filled(table, results))
        if options.train and table.name in _STUDIES:
            made[-1] = dataclasses.replace(made[-1], notes=())  # why there are none of ours
            made.append(_studied(table.name, options.train))
    if options.output:
        with uploaded(options.output, overwrite=True) as folder:
            parts = [Part(one.caption, one.caption, [dataclasses.replace(one, caption="")]) for one in made]
            texts = {form: text_of(made, form) for form in FORMATS} | {"html": page("Tables", None, parts)}
            for form, text in texts.items():
                write_whole(f"{folder}/tables.{form}", text.encode())
        print(f"{counted(len(made), 'table')}: {options.output}/tables.md, and as {', '.join([*texts][1:])}")
    else:
        print(text_of(made, "md"), end="")
    return int(bool(results and results.failed))
