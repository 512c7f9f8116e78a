"""Command lines in files hold no secrets: of our own options, of Beam's, and inside of values."""

import argparse
import re

import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from newsembed.formats.command_line import without_secrets
from newsembed.launch.cli import COMMANDS, parser_of
from newsembed.launch.parsing import option_names


def test_options_have_the_words_up_to_the_next_option():
    arguments = ["build", "--warc", "a", "b", "--s3_session_token", "x", "--verbose", "--azure_connection_string=y"]
    shown = [*arguments[:5], "…", "--verbose", f"{arguments[-1][:-1]}…"]
    assert (without_secrets(arguments), without_secrets([])) == (shown, [])


@pytest.mark.parametrize(
    "words",
    [
        ["--environment_options=process_variables=AWS_SECRET_ACCESS_KEY=abc"],
        ["--environment_config", '{"command": "x", "env": {"DB_PASSWORD": "abc"}}'],
        ["--profiler_extra_env_vars=API_KEY=abc"],
        ["--job_server_jvm_properties", "a=b", "javax.net.ssl.keyStorePassword=abc"],
        ["--s3_endpoint_url=https://me:abc@store.example"],
        ["--beam=--s3_secret_access_key=abc"],
    ],
)
def test_values_that_hold_a_secret_are_hidden(words):
    shown = without_secrets(["build", *words, "--output", "work"])
    assert "abc" not in " ".join(shown)
    assert shown[0] == "build"
    assert shown[1].partition("=")[0] == words[0].partition("=")[0]
    assert shown[-2:] == ["--output", "work"]


@pytest.mark.parametrize(
    "words",
    [
        ["--api_key_file", "key.txt"],
        ["--max_tokens=5"],
        ["--gin", "TASK_FEATURE_LENGTHS={'anchor_tokens': 5}"],
        ["--warc_base=s3://bucket/x:y"],
        ["--articles", "secret.jsonl"],
        ["--environment_config", "image:1.0"],
    ],
)
def test_other_values_stay(words):
    assert without_secrets(words) == words


# Names that look as if their value were secret; what they take is public.
HARMLESS = {
    "--allow_non_deterministic_key_coders",
    "--api_key_file",  # the place of the key
    "--dataflow_kms_key",  # the name of a key
    "--enable_hot_key_logging",
    "--gcp_oauth_scope",
    "--gcp_oauth_scopes",
    "--impersonate_service_account",
    "--service_account_email",
    "--no_auth",
    "--max_tokens",
    "--min_tokens",
    "--pack.min_tokens",
}
SECRET = {"--s3_access_key_id", "--s3_secret_access_key", "--s3_session_token", "--azure_connection_string"}


def beam_options():
    for kind in PipelineOptions.__subclasses__():
        parser = argparse.ArgumentParser(add_help=False)
        kind._add_argparse_args(parser)
        yield from option_names(parser)


def test_every_option_of_a_command_or_of_beam_whose_name_sounds_secret_is_known():
    names = {*beam_options(), *(name for command in COMMANDS for name in option_names(parser_of(command)))}
    suspects = {
        name
        for name in names
        if re.search("secret|token|passw|[._]?key|cred|connection_|auth|account", name.replace("author", ""))
    }
    assert suspects == HARMLESS | SECRET
    hidden = {name for name in names if without_secrets([name, "value"]) != [name, "value"]}
    assert hidden == SECRET
