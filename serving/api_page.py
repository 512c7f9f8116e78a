"""The page ``/docs``: the API as HTML, made on the server from its description; nothing is loaded from elsewhere."""

import html
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

_HEAD: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }}
table {{ border-collapse: collapse; display: block; overflow-x: auto; }}
th, td {{ border: 1px solid #8888; padding: .25rem .5rem; text-align: left; vertical-align: top; }}
pre {{ border: 1px solid #8888; overflow-x: auto; padding: .5rem; }}
</style>
</head>
<body>
<h1>{title} {version}</h1>
<p>The same as <a href="openapi.json">OpenAPI</a>, for programs.</p>
"""


def api_page(schema: Mapping[str, Any]) -> str:
    """HTML with each route: its parameters, the fields of its body, and of its answer.

    Args:
      schema: of OpenAPI 3, as FastAPI makes it.
    """
    info = schema["info"]
    parts = [_HEAD.format(title=html.escape(info["title"]), version=html.escape(info["version"]))]
    for path, methods in schema["paths"].items():
        for method, route in methods.items():
            parts += _route(method, path, route, schema)
    return "\n".join([*parts, "</body>", "</html>"])


def _route(method: str, path: str, route: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    yield f"<h2>{method.upper()} {html.escape(path)}</h2>"
    yield f"<p>{html.escape(route.get('description') or route.get('summary', ''))}</p>"
    if parameters := route.get("parameters"):
        yield "<h3>Parameters</h3>"
        rows = [(one["name"], one.get("schema", {}), one.get("required", False)) for one in parameters]
        yield _table(rows, schema)
    body = _schema_of(route.get("requestBody", {}), schema)
    if body:
        yield "<h3>Body (JSON)</h3>"
        yield _fields(body, schema)
    answer = _schema_of(route.get("responses", {}).get("200", {}), schema)
    if answer.get("properties"):
        yield "<h3>Answer (JSON)</h3>"
        yield _fields(answer, schema)


def _schema_of(holder: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    content = holder.get("content", {}).get("application/json", {})
    return _resolved(content.get("schema", {}), schema)


def _resolved(value: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """What a reference names, or the value itself."""
    if "$ref" not in value:
        return dict(value)
    found: Any = schema
    for name in value["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return dict(found)


def _fields(value: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    needed = value.get("required", [])
    rows = [(name, one, name in needed) for name, one in value.get("properties", {}).items()]
    return _table(rows, schema)


def _table(rows: list[tuple[str, Mapping[str, Any], bool]], schema: Mapping[str, Any]) -> str:
    lines = ["<table>", "<tr><th>name</th><th>type</th><th>default</th><th></th></tr>"]
    for name, value, is_needed in rows:
        default = "required" if is_needed else json.dumps(value["default"]) if "default" in value else ""
        cells = (name, _type(value, schema), default, str(value.get("description", "")))
        lines.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
    return "\n".join([*lines, "</table>"])


def _type(value: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """A type in words: that of the fields of an object in braces."""
    if choices := value.get("anyOf"):
        return " or ".join(_type(one, schema) for one in choices)
    if "enum" in value:
        return " | ".join(map(str, value["enum"]))
    found = _resolved(value, schema)
    if found.get("type") == "array":
        return f"list of {_type(found.get('items', {}), schema)}"
    if names := found.get("properties"):
        return "{" + ", ".join(names) + "}"
    return str(found.get("format") or found.get("type", "any"))
