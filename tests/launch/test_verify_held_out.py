"""`newsembed verify` of training data with a held-out part, whose digests are in the manifest of the whole."""

import hashlib
import json

from newsembed.launch import cli


def test_held_out_files_are_compared_with_the_digests_of_the_whole(tmp_path, capsys):
    (tmp_path / "held_out").mkdir()
    (tmp_path / "held_out" / "rows").write_bytes(b"abc")
    part = {"job": "examples", "files": {"rows": 3}}
    (tmp_path / "held_out" / "manifest.json").write_text(json.dumps(part))
    digests = {
        f"held_out/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (tmp_path / "held_out").iterdir()
    }
    sizes = {name: (tmp_path / name).stat().st_size for name in digests}
    (tmp_path / "manifest.json").write_text(json.dumps({"job": "examples", "files": sizes, "sha256": digests}))
    assert cli.main(["verify", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"{tmp_path}/held_out: 1 file, as written" in lines
    (tmp_path / "held_out" / "rows").write_bytes(b"abd")
    assert cli.main(["verify", str(tmp_path / "held_out")]) == 1
    assert "missing or changed: rows" in capsys.readouterr().out
