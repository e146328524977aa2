"""A refresh of the price file's figures, and an import that outdates them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.kills.imports import Import
from tests.kills.room import held
from tests.system.processes import Server, until

from kept_price_file import compared

FIGURES = "SELECT 1 FROM price_file_figure WHERE seller_id = %(seller)s FOR UPDATE"
DUE = "SELECT 1 FROM work_due WHERE seller_id = %(seller)s AND stream = 'price_file'"
SUMS = "SELECT total, raised_by, lowered_by FROM price_file_figure WHERE seller_id = %(seller)s"
FREE = "SELECT 1 FROM sync_state WHERE seller_id = %(seller)s AND lease_token IS NULL"


class PriceFile(Import):
    """Figures of the first file; after the second file the refresh is killed, or the import before
    it. At no moment do figures hold that are not those of the cards.
    """

    moments = ("while it writes", "between two slabs of the import")
    rounds = 6

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.send(0)
        self.kept()

    def compared(self) -> dict[str, Any]:
        query = compared(self.seller.id).replace(":seller", "%(seller)s")
        [now] = self.seller.sql(query)
        assert now["exact"] or not now["hold"], now
        return now

    def kept(self) -> None:
        def over() -> bool:
            figures = self.seller.sql(SUMS) and self.compared()
            return bool(figures and figures["hold"] and self.seller.sql(FREE))

        until(over, "the figures to be kept", 90)

    def start(self) -> None:
        self.send(1)

    @contextmanager
    def held_at(self, moment: str) -> Iterator[None]:
        if moment == "while it writes":
            with held(self.server, FIGURES, seller=self.seller.id):
                self.start()
                until(self.waits, "the refresh to wait")
                assert not self.compared()["hold"]
                yield
                assert self.seller.sql(DUE)
                assert not self.compared()["hold"]
            return
        self.start()
        until(self.between_slabs, "a committed slab")
        self.compared()
        yield
        self.compared()

    def end(self) -> None:
        states = [self.seller.finished(upload)["state"] for upload in self.uploads]
        assert states == ["done", "done"], self.server.said()[-2000:]
        self.kept()

    def taken(self) -> dict[str, Any]:
        return {"sums": self.seller.sql(SUMS), "compared": self.compared()}

    def is_right(self, taken: dict[str, Any]) -> None:
        assert taken["compared"] == {"hold": True, "exact": True}
        assert taken["sums"][0]["total"] > 50
