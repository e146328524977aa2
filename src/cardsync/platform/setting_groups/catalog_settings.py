"""The settings of pictures and catalogs, which are downloaded from other hosts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field


def _hosts(text: str) -> str:
    """Check the hosts; a host of this machine includes its port."""
    for part in text.split(","):
        if part.strip() and not re.fullmatch(r"[a-z0-9.-]+(:[0-9]{1,5})?", part.strip()):
            raise ValueError(f"{part.strip()} is no host in lower case")
    return text


def _mirror(url: str | None) -> str | None:
    if url and not re.fullmatch(r"https?://[a-z0-9.-]+(:[0-9]{1,5})?(/[\w.~-]+)*/?", url):
        raise ValueError("it must be like http://10.0.0.5:8080 or https://mirror.example/catalogs")
    return url or None


class Fetched(BaseModel):
    picture_hosts: Annotated[str, AfterValidator(_hosts)] = Field(
        "tcgplayer-cdn.tcgplayer.com,cards.scryfall.io,images.pokemontcg.io,assets.tcgdex.net",
        description="Hosts, by commas, from which workers fetch pictures of cards, each once for all sellers; empty: pictures are off, and pages draw a stand-in",
    )
    picture_pause_seconds: float = Field(
        0.5,
        ge=0,
        description="All workers together ask a host for a picture no sooner than so long after the last one",
    )
    catalog_renewal_days: int = Field(
        7,
        ge=0,
        description="Workers download an installed catalog again after so long, if its source has something new; 0: never",
    )
    catalog_dir: Path | None = Field(
        None,
        description="Folder in which workers keep what they downloaded of catalogs, hundreds of megabytes; absent: DATA_DIR/catalogs",
    )
    catalog_mirror: Annotated[str | None, AfterValidator(_mirror)] = Field(
        None,
        description="A server of yours that stands for all sources of catalogs, like http://10.0.0.5:8080: https://api.scryfall.com/bulk-data is asked as http://10.0.0.5:8080/api.scryfall.com/bulk-data; absent: the sources themselves, in the public internet alone",
    )
