"""The aggregator's configuration file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tallyveil.errors import ConfigurationError
from tallyveil_aggregator.config import PERMITTED_PING_INTERVAL_S, load_config

DEPLOY = Path(__file__).parents[2] / "deploy"
LEAST = '[server]\ncertificate = "s.pem"\nprivate_key = "s.key"\nclient_ca = "ca.pem"\n'


def load(folder: Path, text: str) -> object:
    file = folder / "aggregator.toml"
    file.write_text(text)
    return load_config(file)


def test_the_sample_is_a_configuration_whose_values_are_the_defaults(tmp_path: Path) -> None:
    sample = load_config(DEPLOY / "aggregator.toml")
    names = {"server.pem", "server.key", "ca.pem"}
    assert {
        path.name for path in (sample.server.certificate, sample.server.private_key, sample.server.client_ca)
    } == names
    file = tmp_path / "aggregator.toml"
    file.write_text('[server]\ncertificate = "server.pem"\nprivate_key = "server.key"\nclient_ca = "ca.pem"\n')
    least = load_config(file)
    assert (least.server.listen, least.server.max_streams) == (sample.server.listen, sample.server.max_streams)
    assert least.server.keepalive_s == sample.server.keepalive_s
    assert (least.store.name, least.authority_key.name, least.release_key.name) == (
        sample.store.name,
        sample.authority_key.name,
        sample.release_key.name,
    )


def test_paths_are_relative_to_the_file_and_may_be_absolute(tmp_path: Path) -> None:
    file = tmp_path / "aggregator.toml"
    file.write_text(LEAST + '[store]\npath = "/var/lib/a.sqlite"\n')
    config = load_config(file)
    assert config.server.certificate == tmp_path / "s.pem"
    assert config.store == Path("/var/lib/a.sqlite")
    assert config.server.server_ca == config.server.client_ca == tmp_path / "ca.pem"
    file.write_text(LEAST + 'server_ca = "public.pem"\n')
    assert load_config(file).server.server_ca == tmp_path / "public.pem"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LEAST + "max_streams = 0\n", "max_streams is not between"),
        (LEAST + f"keepalive_s = {PERMITTED_PING_INTERVAL_S - 1}\n", "keepalive_s is not between"),
        (LEAST + "keepalive_s = true\n", "'keepalive_s' of [server]"),
        (LEAST + 'listen = "7443"\n', "listen is not HOST:PORT"),
        (LEAST + 'listen = "host:99999"\n', "the port of listen is not between 0 and 65535"),
        (LEAST + f'listen = "host:{"9" * 5000}"\n', "the port of listen is not between 0 and 65535"),
        (LEAST + 'max_streams = "many"\n', "'max_streams' of [server] is not a whole number"),
        (LEAST + "colour = 1\n", "unknown key in [server]: colour"),
        (LEAST + "[colour]\n", "unknown key: colour"),
        (LEAST + "[store]\npath = 1\n", "'path' of [store]"),
        (LEAST + '[store]\npath = ""\n', "path names no file"),
        ("store = 1\n" + LEAST, "[store] is not a section"),
        ('[server]\ncertificate = "s.pem"\n', "[server] has no private_key, client_ca"),
        ("[server", "there is a fault at end of document"),
        (LEAST + 'listen = "a\nb"\n', "there is a fault at line 5, column 12"),
        (LEAST + "[store\npath = 1\n", "there is a fault at line 5, column 7"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, text)
    assert said in caught.value.what
    assert caught.value.not_done == "nothing was started" and caught.value.next_step


def test_a_fault_in_the_file_is_placed_without_quoting_the_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, LEAST + "listen = canary\n")
    assert "line 5" in caught.value.what and "canary" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_said_to_be_that(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no such file"):
        load_config(tmp_path / "none.toml")
    with pytest.raises(ConfigurationError, match="directory"):
        load_config(tmp_path)


def test_bytes_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "aggregator.toml"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="UTF-8"):
        load_config(file)
