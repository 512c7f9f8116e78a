"""Writes xtreme_cases.json: random answers with the scores of XTREME's own scripts.

    python tests/evaluation/make_xtreme_cases.py XTREME > tests/evaluation/xtreme_cases.json

XTREME is a clone of https://github.com/google-research/xtreme at 838c13b6.
"""

import contextlib
import importlib.util
import io
import json
import random
import sys

WORDS = (
    "The a an der die das ein Haus el la los của là cái những ال البيت 北京 ， 。 中国 China hello U.S. don't «x» — "
    "“q” १२ हिन्दी। ß İ 1,000 Straße ¿ x_y $ ^ ｆｕｌｌ 〇 龥 鿿 ٪"
).split()
SPACES = [" ", "", "  ", "\t", "\u00a0"]
LANGUAGES = [None, "en", "es", "de", "ar", "hi", "vi", "zh"]


def text(drawn):
    return "".join(word + drawn.choice(SPACES) for word in drawn.choices(WORDS, k=drawn.randrange(6)))


def cases(drawn):
    for language in LANGUAGES * 12:
        gold = {str(key): [text(drawn) for _ in range(drawn.randrange(1, 4))] for key in range(3)}
        found = {key: drawn.choice([*answers, text(drawn)]) for key, answers in gold.items() if drawn.random() > 0.1}
        yield language, gold, found


def main():
    scripts = {}
    for name in ("squad", "mlqa"):
        spec = importlib.util.spec_from_file_location(name, f"{sys.argv[1]}/third_party/evaluate_{name}.py")
        scripts[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(scripts[name])
    rows = []
    for language, gold, found in cases(random.Random(0)):
        qas = [{"id": key, "answers": [{"text": one} for one in answers]} for key, answers in gold.items()]
        articles = [{"paragraphs": [{"qas": qas}]}]
        with contextlib.redirect_stderr(io.StringIO()):
            if language is None:
                scores = scripts["squad"].evaluate(articles, found)
            else:
                scores = scripts["mlqa"].evaluate(articles, found, language)
        rows.append([language, gold, found, round(scores["f1"], 10), round(scores["exact_match"], 10)])
    print("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]")


if __name__ == "__main__":
    main()
