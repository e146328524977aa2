"""Builds the command that starts this agent again, however it was installed. Pure: the process's
facts are arguments.
"""

from __future__ import annotations

from collections.abc import Mapping


def own_command(environ: Mapping[str, str], executable: str) -> list[str]:
    """Return the words of the command line before the command's name.

    A release that pex built has its path in the environment: SCIE is the path of a whole program,
    PEX that of an archive.
    """
    if scie := environ.get("SCIE"):
        return [scie]
    if pex := environ.get("PEX"):
        return [executable, pex]
    return [executable, "-m", "cardsync_agent"]
