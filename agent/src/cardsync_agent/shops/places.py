"""The path of the agent's settings on each platform. Pure: its inputs are arguments."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

CONFIG_VARIABLE = "CARDSYNC_AGENT_CONFIG"
NAME = "cardsync-agent"
SETTINGS = "agent.toml"


def settings_path(platform: str, environ: Mapping[str, str], home: Path) -> Path:
    """Return the path of the settings file. `platform` is sys.platform."""
    if given := environ.get(CONFIG_VARIABLE):
        return Path(given)
    return _settings_folder(platform, environ, home) / NAME / SETTINGS


def _settings_folder(platform: str, environ: Mapping[str, str], home: Path) -> Path:
    if platform == "win32":
        return Path(environ.get("APPDATA") or home / "AppData" / "Roaming")
    if platform == "darwin":
        return home / "Library" / "Application Support"
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
