"""What may run is what this user made or named, whatever names it."""

import os
import shutil

import pytest
from newsembed.errors import InputError
from newsembed.formats import trust
from newsembed.serving import search
from newsembed.updates import options


@pytest.fixture(autouse=True)
def list_of_user(tmp_path, monkeypatch):
    """A list of its own for each test, as a new user has it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(trust, "_allowed", set())
    return tmp_path / "state" / "newsembed" / "trusted"


@pytest.fixture
def folder(tmp_path):
    """A SavedModel of a stranger, or what looks like one."""
    folder = tmp_path / "odd [name]\n*"
    (folder / "variables").mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes(b"graph")
    (folder / "variables" / "variables.index").write_bytes(b"index")
    return folder


def is_trusted(path):
    try:
        trust.check(str(path), "--saved_model DIR")
    except InputError:
        return False
    return True


def test_only_what_was_allowed_is_trusted_and_only_as_it_was(folder, list_of_user, monkeypatch):
    assert not is_trusted(folder)
    trust.allow(str(folder))
    trust.allow(str(folder))
    assert is_trusted(folder)
    assert len(list_of_user.read_text().splitlines()) == 1
    assert os.stat(list_of_user.parent).st_mode & 0o077 == 0
    monkeypatch.setattr(trust, "_allowed", set())
    assert is_trusted(shutil.copytree(folder, folder.with_name("moved")))  # by another process, in another place
    for name in ("saved_model.pb", "variables/variables.index"):
        before = (folder / name).read_bytes()
        (folder / name).write_bytes(before + b".")
        assert not is_trusted(folder)
        (folder / name).write_bytes(before)
    (folder / "more").write_bytes(b"")
    assert not is_trusted(folder)


def test_files_behind_a_link_count(folder, tmp_path):
    shutil.move(folder / "variables", tmp_path / "elsewhere")
    (folder / "variables").symlink_to(tmp_path / "elsewhere")
    trust.allow(str(folder))
    (tmp_path / "elsewhere" / "variables.index").write_bytes(b"other")
    assert not is_trusted(folder)


def test_a_list_that_cannot_be_written_counts_in_this_process_only(folder, tmp_path, monkeypatch):
    (tmp_path / "state").write_text("a file")
    trust.allow(str(folder))
    assert is_trusted(folder)
    monkeypatch.setattr(trust, "_allowed", set())
    assert not is_trusted(folder)


def test_a_savedmodel_that_an_index_names_is_not_opened(folder, monkeypatch):
    """Of `search`, `serve`, `index --append` and the Python API: all take the encoder of an index from here."""
    opened = []
    monkeypatch.setattr(
        "newsembed.serving.saved_model.SavedModelEncoder", lambda path, **_: opened.append(path) or Encoder
    )
    index = type("Index", (), {"encoder": f"savedmodel:{folder}", "encoder_digest": "", "settings": SETTINGS})()
    with pytest.raises(InputError, match="neither you made it nor a command of yours has named it") as caught:
        search.index_encoder(index)
    assert f"--saved_model {folder}" in caught.value.remedy
    assert opened == []
    search.index_encoder(index, f"savedmodel:{folder}")  # named by the command: trusted from now on
    search.index_encoder(index)
    assert opened == [str(folder)] * 2
    (folder / "saved_model.pb").write_bytes(b"another graph")
    with pytest.raises(InputError, match="neither you made it"):
        search.index_encoder(index)


SETTINGS = {"max_length": None, "document_prompt": None, "long_documents": None}


class Encoder:
    digest = ""


def test_a_savedmodel_that_an_archive_names_is_not_opened(folder, monkeypatch):
    kept = {"clean": {}, "encoder": f"savedmodel:{folder}", "encoder_options": {}}
    monkeypatch.setattr(options, "read_runs", lambda _: [type("Run", (), {"settings": kept})()])
    with pytest.raises(InputError, match="neither you made it"):
        options.current_choice("archive", None)
    given = options.EncoderChoice(f"savedmodel:{folder}")
    assert options.current_choice("archive", given) is given


def test_a_configuration_that_an_archive_names_is_not_read(tmp_path):
    """`update --train` goes on with the configuration of the model that serves."""
    from newsembed.studies import retrain

    (tmp_path / "config.gin").write_text("train.steps = 1\n")
    with pytest.raises(InputError, match="config.gin: --encoder: it can read and write files"):
        retrain._gin_files(str(tmp_path))
    assert retrain._gin_files(str(tmp_path), is_named=True) == [str(tmp_path / "config.gin")]
    assert retrain._gin_files(str(tmp_path)) == [str(tmp_path / "config.gin")]
