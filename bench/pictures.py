"""`python bench/pictures.py [--pictures 10000]`: pictures of 146 × 204 px made by the process that
the worker starts, by seconds of its core; the same of larger files; and the bytes of a page.

The floor is Pillow alone, which reads each file and writes it once as WebP of the same size. The
files are drawn: forms, letters and grain, as a scan of a card has them.
"""

from __future__ import annotations

import asyncio
import io
import random
from pathlib import Path
from time import process_time

import psutil
from PIL import Image, ImageDraw, ImageFilter

import ground
from cardsync.stock.pictures.encoder import encoder
from ground import Report

SMALL, LARGE = (146, 204), (400, 558)
# This many files are drawn and used repeatedly.
DRAWN = 40
ROWS = 40


def drawn(seed: int, size: tuple[int, int]) -> bytes:
    """A card of its own as a JPEG."""
    chance = random.Random(seed)
    colors = [tuple(chance.randrange(256) for _ in range(3)) for _ in range(81)]
    card = Image.new("RGB", (488, 680), colors.pop())
    draw = ImageDraw.Draw(card)
    for color in colors:
        x, y = chance.randrange(40, 400), chance.randrange(70, 330)
        draw.ellipse((x, y, x + chance.randrange(90), y + chance.randrange(90)), fill=color)
    draw.rectangle((30, 400, 458, 640), fill="#e8e0d0")
    for line in range(16):
        draw.text((40, 410 + 14 * line), "Whenever this card enters the battlefield", fill="black")
    grain = Image.effect_noise(card.size, 40).convert("RGB")
    card = Image.blend(card, grain, 0.15).filter(ImageFilter.GaussianBlur(0.6)).resize(size)
    file = io.BytesIO()
    card.save(file, "JPEG", quality=90)
    return file.getvalue()


async def made(sources: list[bytes], times: int) -> tuple[float, list[dict[str, bytes]]]:
    """The seconds of a core that a picture takes in the process, and the last files."""
    async with encoder() as encode:
        await encode.make(sources[0])
        assert encode.process_id is not None
        process = psutil.Process(encode.process_id)
        begun = ground.cpu_seconds(process)
        kept = [await encode.make(sources[n % len(sources)]) for n in range(times)]
        return (ground.cpu_seconds(process) - begun) / times, kept[-ROWS:]


def floor(sources: list[bytes], times: int) -> float:
    begun = process_time()
    for n in range(times):
        picture = Image.open(io.BytesIO(sources[n % len(sources)])).convert("RGB")
        picture.save(io.BytesIO(), "WEBP", quality=78, method=0)
    return (process_time() - begun) / times


def measure(data: Path, rows: int, pictures: int) -> Report:
    report = Report("Pictures of cards")
    sources = [drawn(seed, SMALL) for seed in range(DRAWN)]
    each, kept = asyncio.run(made(sources, pictures))
    alone = floor(sources, min(pictures, 2_000))
    larger = [drawn(seed, LARGE) for seed in range(ROWS)]
    each_large, large = asyncio.run(made(larger, 5 * ROWS))
    report.note(f"{pictures:,} of 146 × 204 px: {each * 1e3:.2f} ms of a core each, in all sizes")
    report.note(f"Pillow alone, one size: {alone * 1e3:.2f} ms")
    report.note(f"of 400 × 558 px: {1 / each_large:,.0f} a second and core")
    report.figure("pictures of 146 × 204 px, a second and core", 1 / each, "/s")
    report.figure("three sizes ÷ Pillow alone with one", each / alone)
    page = max(sum(len(files["small"]) for files in some) for some in (kept, large))
    report.figure(f"pictures of a page of {ROWS} rows", page / 1000, "kB")
    return report


if __name__ == "__main__":
    ground.main(measure, __doc__, pictures=10_000)
