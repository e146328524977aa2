"""The API's address may be taken: another program that has it is reported at once, our own
processes that are ending are waited for.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from cardsync.operations.processes import bind_address
from cardsync.platform.settings import Settings


@pytest.fixture
def taken() -> Iterator[socket.socket]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield listening


@pytest.fixture
def settings(tmp_path: Path, taken: socket.socket) -> Settings:
    return Settings(data_dir=tmp_path / "data", bind=f"127.0.0.1:{taken.getsockname()[1]}")


def test_a_free_address_is_found_free_and_nothing_is_made(
    settings: Settings, taken: socket.socket
) -> None:
    taken.close()
    said: list[str] = []
    bind_address.find_free(settings, said.append)
    assert said == []
    assert not settings.data_dir.exists()


@pytest.mark.parametrize("served_before", [False, True])
def test_another_program_is_not_waited_for(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, served_before: bool
) -> None:
    monkeypatch.setattr(bind_address, "WAIT_SECONDS", 3600)
    said: list[str] = []
    if served_before:
        with bind_address.held(settings):
            pass
    with pytest.raises(
        RuntimeError,
        match=f"cannot serve on {settings.bind}: Address already in use; --host and --port",
    ):
        bind_address.find_free(settings, said.append)
    assert said == []


def test_a_web_process_that_ends_is_waited_for(settings: Settings, taken: socket.socket) -> None:
    said: list[str] = []
    with ExitStack() as living:
        living.enter_context(bind_address.held(settings))
        living.callback(taken.close)

        def say(line: str) -> None:
            said.append(line)
            living.close()

        bind_address.find_free(settings, say)
    [line] = said
    assert line.startswith(
        f"{settings.bind}: Address already in use, maybe by a cardsync that is ending;"
        " waiting at most"
    )


def test_an_address_that_is_not_ours_is_not_waited_for(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bind_address, "WAIT_SECONDS", 3600)
    elsewhere = settings.model_copy(update={"bind": "192.0.2.1:8000"})
    with (
        bind_address.held(settings),
        pytest.raises(RuntimeError, match=r"192\.0\.2\.1:8000: Cannot assign"),
    ):
        bind_address.find_free(elsewhere, print)


def test_a_web_process_that_stays_is_told_of_in_the_end(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bind_address, "WAIT_SECONDS", 0.3)
    # Others may hold it as well: web processes beside it, on another port.
    with (
        bind_address.held(settings),
        bind_address.held(settings),
        pytest.raises(RuntimeError, match="cannot serve on"),
    ):
        bind_address.find_free(settings, print)
