"""Combines the settings of all districts from `setting_groups/`, each with its default and one line
of help. `docs/settings.md` is generated from the settings, and a test compares it with them.

Sources, strongest first: arguments, environment `CARDSYNC_<NAME>`, a secret file named by
`CARDSYNC_<NAME>_FILE`, the TOML file named by `CARDSYNC_CONFIG`, the default.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from cardsync.platform.setting_groups.access_settings import Lifetimes, RateLimits, Secrets, Waits
from cardsync.platform.setting_groups.agents_settings import Syncs
from cardsync.platform.setting_groups.catalog_settings import Fetched
from cardsync.platform.setting_groups.platform_settings import Logs, OldData, Places, Processes
from cardsync.platform.setting_groups.shop_settings import Notices, Offered

PREFIX = "CARDSYNC_"


def _config_file() -> str | None:
    """Return the path of the TOML file. Raises RuntimeError if the named file is unreadable,
    because its settings would otherwise be ignored silently.
    """
    path = os.environ.get(f"{PREFIX}CONFIG")
    if path:
        try:
            tomllib.loads(Path(path).expanduser().read_text())
        except OSError as e:
            raise RuntimeError(f"{PREFIX}CONFIG names {path}: {e.strerror}") from None
        except ValueError as e:
            raise RuntimeError(f"{PREFIX}CONFIG names {path}, which is no TOML: {e}") from None
    return path


class SecretFiles(PydanticBaseSettingsSource):
    """Reads secrets from files: `CARDSYNC_DATABASE_URL_FILE=/run/secrets/db` means the text of that
    file.
    """

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[object, str, bool]:
        path = os.environ.get(f"{PREFIX}{field_name.upper()}_FILE")
        return (Path(path).read_text().strip() if path else None), field_name, False

    def __call__(self) -> dict[str, object]:
        found = {
            name: self.get_field_value(info, name)[0]
            for name, info in self.settings_cls.model_fields.items()
        }
        return {name: value for name, value in found.items() if value is not None}


class Settings(
    # Pydantic takes the fields of the last base class first.
    Logs,
    Notices,
    Fetched,
    RateLimits,
    OldData,
    Lifetimes,
    Syncs,
    Offered,
    Secrets,
    Waits,
    Processes,
    Places,
    BaseSettings,
):
    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        toml = TomlConfigSettingsSource(settings_cls, _config_file())
        return init_settings, env_settings, SecretFiles(settings_cls), toml

    @property
    def sends_mail(self) -> bool:
        return None not in (self.mail_url, self.mail_from) and self.outward_requests

    @property
    def catalogs_folder(self) -> Path:
        return self.catalog_dir or self.data_dir / "catalogs"


def described_settings() -> list[dict[str, str | None]]:
    """Return each setting with its default, as written, and its line of help."""
    return [
        {
            "name": name,
            "default": "the user's data folder + `cardsync`"
            if name == "data_dir"
            else None
            if info.default is None
            else f"`{info.default}`",
            "help": info.description,
        }
        for name, info in Settings.model_fields.items()
    ]


def settings_page() -> str:
    """Return the text of docs/settings.md, from the fields."""
    lines = [
        "# Settings",
        "",
        f"Environment `{PREFIX}<NAME>`; a secret may be in a file named by `{PREFIX}<NAME>_FILE`;",
        "",
    ]
    lines[-2] += (
        f" `{PREFIX}CONFIG` names a TOML file. This page is printed by `cardsync settings`."
    )
    for one in described_settings():
        lines += [
            f"### `{one['name']}`",
            f"{one['help']}. Default: {one['default'] or 'none'}.",
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"
