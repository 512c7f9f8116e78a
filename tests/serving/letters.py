"""An encoder without a model, and short ways to a command, a server and an export."""

import numpy as np


class Letters:
    """Counts letters: enough of an encoder to have an order of results."""

    digest, dimensions, tokenizer_name = "letters", 26, "letters"

    def encode(self, titles, bodies):
        counts = np.zeros((len(titles), 26), np.float32)
        for row, text in enumerate(f"{title} {body}".lower() for title, body in zip(titles, bodies, strict=True)):
            for letter in text:
                if "a" <= letter <= "z":
                    counts[row, ord(letter) - 97] += 1
        return counts / np.maximum(np.linalg.norm(counts, axis=1, keepdims=True), 1)

    def encode_queries(self, texts):
        return self.encode(texts, [""] * len(texts))

    def preparations(self):
        return iter(())


def parsed(module, *arguments):
    """What the command of a module gets for the words of a command line."""
    from newsembed.launch import cli

    return cli.parsed("command", module, [str(one) for one in arguments])


def run(module, *arguments):
    """The exit status of the command of a module."""
    return module.run(parsed(module, *arguments))


def client_of(service, *options, base_url="http://localhost", **more):
    """A client of a server; `more` is of the client."""
    from newsembed.serving.server import create_app
    from starlette.testclient import TestClient

    return TestClient(create_app(service, *options), base_url=base_url, **more)


def exported(model, output, **options):
    """The report of an export for this processor."""
    from newsembed.serving import export

    return export.export(
        export.ExportOptions(model=str(model), output=str(output), **{"platforms": ("cpu",), **options})
    )
