"""The sync app's commands are right in the shell of each system."""

import shlex
import shutil
import subprocess

import pytest

from cardsync.dashboard.agent_commands import shells

SERVER, KEY = "https://cards.fernhill.example:8443", "csk_0123456789abcdefABCDEFGHIJKLMNOPQRSTUV"
APP = f"{SERVER}/sync-app/cardsync_agent-0.2.0-py3-none-any.whl"


def lines(key, server=SERVER):
    return {one.key: one.lines for one in shells(server, APP, KEY)}[key].splitlines()


def test_powershell_sets_the_variable_of_its_session():
    install, key, run = lines("powershell")
    assert install == f'py -m pip install --user "{APP}"'
    assert key == f'$env:CARDSYNC_AGENT_KEY = "{KEY}"'
    assert run == f'py -m cardsync_agent run --server "{SERVER}" --folder cards'


def test_the_command_prompt_keeps_no_space_and_no_quotes_in_the_value():
    _, key, run = lines("cmd")
    assert key == f'set "CARDSYNC_AGENT_KEY={KEY}"'
    assert "$" not in run
    assert "'" not in run


@pytest.mark.parametrize("server", [SERVER, "http://[fd00::4]:8000"])
@pytest.mark.parametrize(("system", "grammar"), [("powershell", "powershell"), ("cmd", "batch")])
def test_a_grammar_of_windows_reads_three_statements(system, grammar, server):
    """No shell of Windows runs here; a grammar finds quotes and brackets that end nowhere."""
    tree_sitter = pytest.importorskip("tree_sitter")
    language = pytest.importorskip(f"tree_sitter_{grammar}").language()
    read = tree_sitter.Parser(tree_sitter.Language(language)).parse
    given = [f"{line}\n" for line in lines(system, server)]
    assert len(given) == 3
    assert not read("".join(given).encode()).root_node.has_error
    for line in given:
        assert not read(line.encode()).root_node.has_error, line
        assert read(f"{line}if (\n".encode()).root_node.has_error


@pytest.mark.parametrize("system", ["macos", "linux"])
@pytest.mark.parametrize("server", [SERVER, "http://[fd00::4]:8000"])
@pytest.mark.parametrize("shell", ["sh", "bash", "dash", "zsh"])
def test_a_shell_of_unix_runs_the_app_with_its_key(system, server, shell, tmp_path):
    """The lines run as they are, with programs that note what they were given."""
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    app = tmp_path / "cardsync-sync" / "bin"
    app.mkdir(parents=True)
    note = '#!/bin/sh\necho "$0 $* $CARDSYNC_AGENT_KEY" >> "$HOME/noted"\n'
    for path in (tmp_path / "python3", app / "pip", app / "cardsync-agent"):
        path.write_text(note)
        path.chmod(0o755)
    env = {"HOME": str(tmp_path), "PATH": f"{tmp_path}:/usr/bin:/bin"}
    text = "\n".join(lines(system, server))
    subprocess.run([shell, "-c", text], env=env, check=True, timeout=20)
    made, installed, ran = (tmp_path / "noted").read_text().splitlines()
    assert made.split(" ", 1)[1].strip() == f"-m venv {tmp_path}/cardsync-sync"
    assert installed.endswith(f"pip install {APP} ")
    assert shlex.split(ran)[1:] == ["run", "--server", server, "--folder", "cards", KEY]


@pytest.mark.parametrize(
    "server", ['http://a"; rm -rf ~', "http://a$(x)", "http://a b", "http://%x%"]
)
def test_an_address_that_a_shell_would_read_is_none(server):
    with pytest.raises(ValueError, match="no address"):
        shells(server, APP, KEY)


def test_a_key_that_a_shell_would_read_is_none():
    with pytest.raises(ValueError, match="no key"):
        shells(SERVER, APP, "csk_$x")
