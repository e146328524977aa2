"""Imports a price file through the seller's browser. The file is staged, the marketplace's own
report is compared with the sent rows, and only a matching file is published. Then the marketplace's
prices are verified: some of each batch, and in the end all. The first file with a new pack begins
with a canary, a small batch of the smallest changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

from cardsync_agent.events import Reporter
from cardsync_agent.marketplace import NotTaken
from cardsync_agent.marketplace import price_batches as batches
from cardsync_agent.marketplace.browser_export import BrowserExport
from cardsync_agent.marketplace.browser_workflows import BrowserWorkflows, Unfinished
from cardsync_agent.marketplace.import_journal import Batch, Import, ImportJournal
from cardsync_agent.marketplace.price_batches import Listed, Plan
from cardsync_agent.step_ends import NothingThere, StepFailed, StepSkipped
from cardsync_agent.workflow.pack import Pack

# The most cards of one look-up, if the marketplace has look-ups.
READ_BACK = 50
# The export may lack this many cards of a price file, or a tenth of them.
MOST_GONE = 20
_NAMED = 5


class BrowserImport:
    def __init__(
        self,
        journal: ImportJournal,
        workflows: BrowserWorkflows,
        export: BrowserExport,
        say: Reporter,
    ) -> None:
        self._journal, self._workflows, self._export = journal, workflows, export
        self._say = say

    def bring(
        self,
        name: str,
        content: bytes,
        *,
        staged: bool,
        go_on: Callable[[], None],
        note_staged: Callable[[], None],
    ) -> None:
        """Import the file into the marketplace, batch by batch, each once. Raises NotTaken,
        StepFailed, and whatever `go_on` and `note_staged` raise: then no further batch is
        published.
        """
        begun = self._begun(name, content, staged=staged)
        for batch in begun.batches:
            if batch.state == "publishing":
                self._settle(begun, batch)
            if batch.state == "planned":
                go_on()
                bring = self._add if batch.is_added else self._import
                bring(begun, batch, note_staged)
            if batch.state == "unread":
                self._read_back(begun, batch)

    def published(self, name: str) -> frozenset[int]:
        """Return the cards of a file whose published prices were verified so far."""
        begun = self._journal.of(name)
        files = [
            self._journal.path(batch).read_bytes()
            for batch in (begun.batches if begun else ())
            if batch.state == "published"
        ]
        rows = (row for file in files for row in batches.rows_of(file)[1])
        return frozenset(row.id for row in rows if row.id is not None)

    def _begun(self, name: str, content: bytes, *, staged: bool) -> Import:
        """Return the file's import to continue, or a new import. Raises StepFailed if the import
        must not continue, or if its earlier progress is unknown.
        """
        begun, pack = self._journal.of(name), self._workflows.pack()
        if begun is None:
            if staged:
                raise StepFailed(_not_known(name))
            self._end_earlier()
            plan = self._plan(content, pack)
            return self._journal.begin(name, content, plan, _version(pack))
        if begun.stopped is not None:
            raise StepFailed(begun.stopped)
        waiting = [batch for batch in begun.batches if batch.state == "planned"]
        if waiting and begun.pack != _version(pack):
            # A new pack is tested by a canary of the remaining rows.
            files = [self._journal.path(batch).read_bytes() for batch in waiting]
            plan = self._plan(batches.joined(files), pack)
            self._journal.go_on_with(begun, plan, _version(pack))
        return begun

    def _end_earlier(self) -> None:
        """Determine how the last import ended before its journal is given up."""
        last = self._journal.last()
        for batch in last.batches if last else ():
            assert last is not None
            if batch.state == "publishing":
                self._settle(last, batch)

    def _plan(self, content: bytes, pack: Pack) -> Plan:
        shop, form = self._export.listed(), pack.files.get("prices")
        canary = not self._journal.has_tried(_version(pack))
        has_form = self._workflows.lacks("quick_add") is None
        by_form = self._export.by_name() if has_form else None
        most = form.most_rows if form else None
        plan = batches.plan(content, shop, most, canary=canary, by_form=by_form)
        rows = len(batches.rows_of(content)[1])
        if len(plan.gone) > max(MOST_GONE, rows // 10):
            raise StepFailed(
                f"{len(plan.gone)} of {rows} cards are not in the marketplace's export: is a filter"
                " set there? Nothing was sent"
            )
        if plan.gone:
            text = (
                f"{len(plan.gone)} cards are not in the marketplace's export any more, and are"
                f" left out: {_some(plan.gone)}"
            )
            self._say("cards_gone", text, problem=True, cards=plan.gone)
        if not plan.files + plan.added:
            raise NothingThere("the marketplace lists no card of the price file any more")
        return plan

    def _settle(self, begun: Import, batch: Batch) -> None:
        """Determine whether an interrupted batch was published."""
        content = self._journal.path(batch).read_bytes()
        self._export.forget()
        published = batches.was_published(content, batch.before, self._export.listed())
        if published is None and batches.adds_stock(content):
            raise StepFailed(_not_known(begun.name))
        batch.state = "unread" if published else "planned"
        self._journal.save(begun)

    def _import(self, begun: Import, batch: Batch, note_staged: Callable[[], None]) -> None:
        content = self._journal.path(batch).read_bytes()
        if batches.adds_stock(content):
            # The comparison after the import needs an export from directly before it.
            self._export.forget()
        before = batches.cards_of(content, self._export.listed())
        values = {"rows_sent": str(batch.rows)}
        values |= self._stage(batch, values)
        begin = self._beginning(begun, batch, before, note_staged)
        try:
            self._workflows.perform("publish_prices", values, tries=1, note_change=begin)
        except (StepFailed, StepSkipped):
            if batch.state == "planned":
                self._take_back(values)
            raise
        self._note_published(begun, batch)

    def _add(self, begun: Import, batch: Batch, note_staged: Callable[[], None]) -> None:
        """Add one card's stock by the marketplace's own form."""
        [row] = batches.rows_of(self._journal.path(batch).read_bytes())[1]
        assert row.id is not None
        before = {row.id: self._shown_of([row.id]).get(row.id, Listed(None, 0))}
        values = {
            "card_id": str(row.id), "condition": row.condition, "quantity": str(row.adds),
            "price": f"{row.price}",
        }  # fmt: skip
        begin = self._beginning(begun, batch, before, note_staged)
        self._workflows.perform("quick_add", values, tries=1, note_change=begin)
        self._note_published(begun, batch)

    def _beginning(
        self,
        begun: Import,
        batch: Batch,
        before: dict[int, Listed],
        note_staged: Callable[[], None],
    ) -> Callable[[str], None]:
        """Return the function that is called right before a batch is published."""

        def begin(_: str) -> None:
            note_staged()
            batch.before, batch.state = before, "publishing"
            self._journal.save(begun)
            self._export.forget()

        return begin

    def _note_published(self, begun: Import, batch: Batch) -> None:
        batch.state = "unread"
        self._journal.save(begun)
        text = f"published {batch.rows:,} rows of {begun.name}"
        self._say("prices_published", text, file=begun.name, rows=batch.rows)

    def _stage(self, batch: Batch, values: Mapping[str, str]) -> dict[str, str]:
        """Stage a file; return the address parts that identify it at the marketplace. Raises
        NotTaken, after discarding the staged file, if the marketplace's report does not agree with
        the file.
        """
        files = {"prices": self._journal.path(batch)}
        problem: Unfinished | None
        reports: Sequence[Path]
        try:
            outcome = self._workflows.perform("stage_prices", values, files, tries=1)
            problem, reports, places = None, outcome.files.get("import_report", ()), outcome.places
        except Unfinished as unfinished:
            problem, places = unfinished, unfinished.places
            reports = unfinished.files.get("import_report", ())
        refused: dict[int, str] = {}
        for report in reports:
            refused |= batches.refused_of(report.read_bytes())
            report.unlink(missing_ok=True)
        if refused:
            self._discard({**values, **places})
            raise NotTaken(_refusal(batch.rows, refused), refused)
        if problem is not None:
            self._take_back({**values, **places})
            raise problem
        return places

    def _take_back(self, values: Mapping[str, str]) -> None:
        """Discard the staged file, so that nobody publishes it. A failure, such as a closed
        browser, is ignored.
        """
        with suppress(StepFailed):
            self._discard(values)

    def _discard(self, values: Mapping[str, str]) -> None:
        if self._workflows.has("discard_prices"):
            self._workflows.perform("discard_prices", values, tries=1)

    def _read_back(self, begun: Import, batch: Batch) -> None:
        """Compare the marketplace's prices with those of a batch, and after the last batch with all
        sent prices. If the marketplace shows another price, stop the import and raise StepFailed.
        """
        is_last = batch is begun.batches[-1]
        sent = begun.batches if is_last else [batch]
        files = [(self._journal.path(one).read_bytes(), one.before) for one in sent]
        most = None if is_last else READ_BACK
        ids = [id for file, was in files for id in batches.largest_moves(file, was, most)]
        if ids:
            shown = self._shown_of(ids)
            wrong = [one for file, _ in files for one in batches.differing(file, shown)]
            missing = [id for id in ids if id not in shown]
            # The last copies of a card may have sold since the first batch.
            if wrong or len(missing) > (len(ids) // 10 if is_last else 0):
                # The next file begins with a canary again.
                self._journal.note_tried(None)
                begun.stopped = _difference(wrong, missing)
                for one in sent:  # nothing of the file is reported as published
                    one.state = "unread"
                self._journal.save(begun)
                raise StepFailed(begun.stopped)
        batch.state = "published"
        self._journal.save(begun)
        # A card that was added by the form proves nothing about the import.
        staged = any(not one.is_added for one in begun.batches)
        if ids and staged and (batch.is_canary or begun.is_done):
            self._journal.note_tried(begun.pack)

    def _shown_of(self, ids: list[int]) -> dict[int, Listed]:
        """Look up a few cards; for many, or without look-ups, export all."""
        if len(ids) <= READ_BACK and self._workflows.has("read_prices"):
            values = {"ids": ",".join(map(str, ids))}
            return _listed(self._workflows.perform("read_prices", values).file("card_prices"))
        self._export.forget()
        return self._export.listed()


def _not_known(name: str) -> str:
    return (
        f"it is not known whether the marketplace took all of {name}: look there, and report it"
        f" with `cardsync-agent imported exports/{name}`, or add `--failed REASON` if it took none"
        " of it"
    )


def _difference(wrong: list[tuple[int, Decimal, Decimal | None]], missing: list[int]) -> str:
    """Return the sentence for an import that stops because of at least one card."""
    if not wrong:
        return (
            f"the marketplace does not show {len(missing)} cards whose prices were just published:"
            f" {_some(missing)}; nothing more of this file is sent"
        )
    id, sent, found = wrong[0]
    more = f", and {len(wrong) - 1} more cards differ" if len(wrong) > 1 else ""
    return (
        f"the marketplace shows {_dollars(found)} for card {id}, and {_dollars(sent)} was sent"
        f"{more}; nothing more of this file is sent"
    )


def _version(pack: Pack) -> str:
    return f"{pack.marketplace} {pack.locale} {pack.version}"


def _listed(path: Path) -> dict[int, Listed]:
    found = batches.listed_of(path.read_bytes())
    path.unlink(missing_ok=True)
    return found


def _dollars(amount: Decimal | None) -> str:
    """Format an amount with two decimals, or with more if it has them."""
    if amount is None:
        return "no price"
    return f"${amount.normalize():.2f}" if amount == round(amount, 2) else f"${amount.normalize()}"


def _some(ids: list[int]) -> str:
    named = ", ".join(map(str, ids[:_NAMED]))
    return named if len(ids) <= _NAMED else f"{named} and {len(ids) - _NAMED} more"


def _refusal(rows: int, refused: Mapping[int, str]) -> str:
    named = "; ".join(f"{id} ({why})" for id, why in list(refused.items())[:_NAMED])
    more = f"; and {len(refused) - _NAMED} more" if len(refused) > _NAMED else ""
    return (
        f"the marketplace would not take {len(refused)} of {rows} rows, so nothing of them was"
        f" published: {named}{more}"
    )
