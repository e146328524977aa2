"""Records a workflow: a person clicks through it once in the browser, the agent proposes each step
with its locators and its post-condition, and the person confirms it in the terminal.

Typed text is not read, and a form with a password is not recorded at all. A click with Alt does not
reach the page: it selects a number to check, or with Shift an element that a picture must not show.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from cardsync_agent import clock
from cardsync_agent.browser.csv_download import CsvDownload
from cardsync_agent.browser.origins import is_allowed, origin_of
from cardsync_agent.browser.start_browser import SellersBrowser
from cardsync_agent.browser.trouble import browser_errors
from cardsync_agent.workflow import pack
from cardsync_agent.workflow.figures import figure_of
from cardsync_agent.workflow.locators import said
from cardsync_agent.workflow.post_conditions import first_record
from cardsync_agent.workflow.proposed_locators import name_of, propose, propose_alike
from cardsync_agent.workflow.recordings import Recorded

if TYPE_CHECKING:
    from playwright.sync_api import ElementHandle, Page

_SETTLES = 1.0
_DOWNLOAD_BEGINS = 2.0
_MOST_NEW = 3

# The script stops a click until its element was examined; then the agent clicks. A form with a
# password is not watched, because the person fills it.
_REPORT = r"""
(() => {
  if (window.__cardsync) return;
  const state = window.__cardsync = {elements: [], passing: false};
  const secret = (el) => {
    const form = el.form || el.closest('form');
    return el.type === 'password'
      || !!form && [...form.querySelectorAll('input')].some((x) => x.type === 'password');
  };
  const report = (kind, el, option) => {
    state.elements.push(el);
    window.cardsyncRecord({kind, at: state.elements.length - 1, option: option || ''});
  };
  addEventListener('click', (event) => {
    if (event.altKey && !state.passing) {
      event.preventDefault();
      event.stopImmediatePropagation();
      report(event.shiftKey ? 'mask' : 'point', event.target);
      return;
    }
    const el = event.target.closest && event.target.closest('button, a[href], summary,'
      + 'input[type=submit], input[type=button], input[type=image], [role=button], [role=link],'
      + '[role=menuitem], [role=tab]');
    if (!el || state.passing || secret(el)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    report('click', el);
  }, true);
  addEventListener('change', (event) => {
    const el = event.target;
    if (state.passing || secret(el)) return;
    if (el.localName === 'select') report('choose', el, el.selectedOptions[0]?.label);
    else if (el.type === 'file') report('upload', el);
    else if (el.type === 'checkbox' || el.type === 'radio') report('choose', el);
    else report('fill', el);
  }, true);
})()
"""
_LANDMARKS = r"""
() => [...document.querySelectorAll('h1, h2, h3, button, a[href], [role=heading], [role=button],'
    + '[role=status], [role=alert], table, form')]
  .filter((el) => el.checkVisibility())
  .map((el) => el.localName + '|' + (el.innerText || '').trim().slice(0, 60))
"""
_NEW = r"""
(before) => {
  const rank = {h1: 0, h2: 1, h3: 2};
  return [...document.querySelectorAll('h1, h2, h3, button, a[href], [role=heading],'
    + '[role=button], [role=status], [role=alert]')]
    .filter((el) => el.checkVisibility() && (el.innerText || '').trim()
      && !before.includes(el.localName + '|' + el.innerText.trim().slice(0, 60)))
    .map((el) => [rank[el.localName] ?? (el.role ? 3 : 4), el])
    .sort((a, b) => a[0] - b[0]).map((one) => one[1]);
}
"""
_LET_THROUGH = "(passing) => { if (window.__cardsync) window.__cardsync.passing = passing; }"
QUESTION = (
    "keep it? [y]es, [n]o, yes and it [c]hanges something, yes and [e]nd, [ce] it changes something"
    " and ends: "
)
# The person's answer that the option is to be chosen anew each time.
_FIXED = "fixed"
_HOW = (
    "click through the workflow once; each step is confirmed here. With Alt, click a number that"
    " must be the one that was sent, like the rows accepted; with Alt and Shift, what names a buyer"
)


@dataclass
class _Event:
    kind: str
    at: int
    option: str


class Recorder:
    """`ask` puts a question to the person and returns the answer. `write` shows a line."""

    def __init__(
        self,
        browser: SellersBrowser,
        origin: str,
        workflow: str,
        ask: Callable[[str], str],
        write: Callable[[str], None],
    ) -> None:
        self._browser, self._origin, self._ask, self._write = browser, origin, ask, write
        file, self._values = pack.WORKFLOWS.get(workflow, ("", ()))
        self._file = file or workflow
        # Whether clicks at other sites count, because the person's turn may be at any site.
        self._elsewhere = False
        self._events: list[_Event] = []
        self._recorded = Recorded()

    def record(self, start: str) -> Recorded:
        """Record until the person ends the workflow or closes the tab."""
        with browser_errors():
            page = self._open(start)
            self._first_step(page, start)
            self._write(_HOW)
            while not page.is_closed():
                if self._events and self._step(page, self._events.pop(0)):
                    break
                page.wait_for_timeout(100)
            if not page.is_closed():
                page.evaluate(_LET_THROUGH, True)
        return self._recorded

    def record_turn(self, start: str, kind: pack.TurnKind) -> Recorded:
        """Record a page that needs the person, by an element that only this page has, or by its
        foreign site.
        """
        self._elsewhere = True
        with browser_errors():
            page = self._open(start)
            self._write(f"go to the page of the {kind.replace('_', ' ')}, and click with Alt what")
            self._write("only that page has, like the field to be filled; of another site anything")
            while not page.is_closed():
                event = self._events.pop(0) if self._events else None
                if event and event.kind in ("point", "mask") and self._turn(page, event, kind):
                    break
                page.wait_for_timeout(100)
        return self._recorded

    def _turn(self, page: Page, event: _Event, kind: pack.TurnKind) -> bool:
        handle = self._handle(page, event)
        if handle is None:
            return False
        if (site := origin_of(page.url)) != origin_of(self._origin):
            question = f"only wait, and do nothing, wherever it is {site}? [y]es, [n]o: "
            if self._ask(question)[:1] == "n":
                return False
            self._recorded.sign_in_origins.append(site)
            return True
        element = propose(page, handle)
        name = self._name(element)
        for locator in element.locators:
            self._write(f"  found by {said(locator)}")
        if (
            self._ask(f"the {kind.replace('_', ' ')} is there while this is? [y]es, [n]o: ")[:1]
            == "n"
        ):
            return False
        self._recorded.elements[name] = element
        self._recorded.turn = pack.YourTurn(kind=kind, any_of=(name,))
        return True

    def _open(self, start: str) -> Page:
        page = self._browser.page()
        page.expose_binding("cardsyncRecord", self._on_event)
        page.add_init_script(_REPORT)
        page.goto(f"{self._origin}{start}")
        self._settle(page)
        return page

    def _handle(self, page: Page, event: _Event) -> ElementHandle | None:
        """Return the element of an event. Return None if the page has navigated by itself."""
        return page.evaluate_handle(
            "(at) => window.__cardsync && window.__cardsync.elements[at]", event.at
        ).as_element()

    def _on_event(self, source: Any, event: dict[str, Any]) -> None:
        frame = source["frame"]
        is_here = self._elsewhere or is_allowed(frame.url, [self._origin])
        if frame == frame.page.main_frame and is_here:
            self._events.append(_Event(event["kind"], int(event["at"]), str(event["option"])))

    def _first_step(self, page: Page, start: str) -> None:
        then, elements = self._condition(page, "", [])
        then = then if then.url else msgspec.structs.replace(then, url=_pattern(page.url))
        self._keep(pack.Goto(name="open", path=start, then=then), elements)

    def _step(self, page: Page, event: _Event) -> bool:
        """Handle one event; return whether the workflow ends here."""
        handle = self._handle(page, event)
        if handle is None:
            return False
        if event.kind == "mask":
            self._mask(page, handle)
            return False
        if event.kind == "point":
            return self._figure(page, handle)
        if event.kind == "fill" and not self._values:
            self._write("nothing is known that could be written here")
            return False
        element = propose(page, handle)
        name = self._name(element)
        before, address = page.evaluate(_LANDMARKS), page.url
        columns = self._click(page, handle) if event.kind == "click" else None
        self._settle(page)
        then, elements = self._condition(page, address, before)
        if columns is not None:
            then, elements = pack.Condition(), {}
        elif then == pack.Condition():
            # Nothing else changed, so the condition is that the element is still there.
            then = pack.Condition(visible=name)
        step = self._made(event, name, then, columns)
        self._show(step, element, elements)
        answer = self._ask(QUESTION).strip().lower()
        if answer.startswith("n"):
            return False
        if answer.startswith("c"):
            step = msgspec.structs.replace(step, changes=True)
        self._keep(step, {name: element, **elements})
        return answer == "ce" or answer.startswith("e")

    def _mask(self, page: Page, handle: ElementHandle) -> None:
        element, count = propose_alike(page, handle)
        places = "1 place" if count == 1 else f"{count} places"
        self._write(f"covered: {places}, found by {said(element.locators[0])}")
        if self._ask("cover it in every picture? [y]es, [n]o: ").strip().lower()[:1] == "n":
            return
        name = self._name(element, self._named("name of what is covered", "buyer"))
        self._recorded.elements[name] = element
        self._recorded.masked.append(name)

    def _figure(self, page: Page, handle: ElementHandle) -> bool:
        """Make a step check a number of the page; return whether the workflow ends here."""
        text = handle.inner_text()
        if figure_of(text, "en") is None:
            self._write(f"that shows no single number: {' '.join(text.split())[:60]}")
            return False
        if not self._values:
            self._write("nothing is sent here that it could be")
            return False
        element = propose(page, handle, shows_data=True)
        value = self._one_of("name of the number that it must be", self._values)
        name = self._name(element, self._named("name of what shows it", "rows_accepted"))
        then = pack.Condition(url=_pattern(page.url), figure=name, equals=value)
        step = pack.Expect(name=f"read_{name}"[:60], then=then)
        self._show(step, element, {})
        answer = self._ask(QUESTION).strip().lower()[:1]
        if answer != "n":
            self._keep(step, {name: element})
        return answer == "e"

    def _click(self, page: Page, handle: ElementHandle) -> list[str] | None:
        """Do the click that was stopped; return the columns of the downloaded file, or None if the
        click downloaded no file.
        """
        page.evaluate(_LET_THROUGH, True)
        with (
            tempfile.TemporaryDirectory() as folder,
            CsvDownload(self._browser.browser(), page, Path(folder), [self._origin]) as coming,
        ):
            handle.click(no_wait_after=True)
            ends = clock.monotonic() + _DOWNLOAD_BEGINS
            navigated = page.url
            while not coming.has_begun() and clock.monotonic() < ends and page.url == navigated:
                page.wait_for_timeout(50)
            columns = None
            if coming.has_begun():
                file = coming.take(Path(folder) / "it.csv", lambda: page.wait_for_timeout(50))
                columns = first_record(file)
        if not page.is_closed():
            page.evaluate(_LET_THROUGH, False)
        return columns

    def _condition(
        self, page: Page, address: str, before: list[str]
    ) -> tuple[pack.Condition, dict[str, pack.Element]]:
        """Propose a condition that is satisfied after the step and was not before."""
        url = (
            _pattern(page.url) if page.url.partition("?")[0] != address.partition("?")[0] else None
        )
        new = page.evaluate_handle(_NEW, before)
        for at in range(_MOST_NEW):
            handle = new.evaluate_handle("(all, at) => all[at]", at).as_element()
            if handle is None:
                break
            element = propose(page, handle)
            # A text with a number changes from day to day, so it is no condition.
            has_number = re.search(r"\d", element.looks.text + element.looks.label)
            if not has_number and any(x.role or x.text or x.test_id for x in element.locators):
                name = self._name(element)
                return pack.Condition(url=url, visible=name), {name: element}
        return pack.Condition(url=url), {}

    def _made(
        self, event: _Event, name: str, then: pack.Condition, columns: list[str] | None
    ) -> pack.Step:
        step_name = f"{event.kind}_{name}"[:60]
        if columns is not None:
            file = self._file
            then = pack.Condition(file=file, header=tuple(columns[:20]))
            return pack.Download(name=f"download_{name}"[:60], element=name, file=file, then=then)
        if event.kind == "fill":
            value = self._one_of("name of the value that is written", self._values)
            return pack.Fill(name=step_name, element=name, value=value, then=then)
        if event.kind == "upload":
            return pack.Upload(name=step_name, element=name, file="prices", then=then)
        if event.kind == "choose":
            return self._choice(pack.Choose(name=step_name, element=name, then=then), event.option)
        return pack.Click(name=step_name, element=name, then=then)

    def _choice(self, step: pack.Choose, option: str) -> pack.Choose:
        """Let a select use the current option each time, or the option in a named value."""
        known = (_FIXED, *self._values) if option else (_FIXED,)
        value = self._one_of("name of the value that is chosen", known)
        if value == _FIXED:
            return msgspec.structs.replace(step, option=option or None)
        return msgspec.structs.replace(step, value=value)

    def _one_of(self, what: str, known: Sequence[str]) -> str:
        """Return the name that the person chooses; the default is the first name that no
        step uses.
        """
        used = {getattr(step, "value", None) for step in self._recorded.steps}
        usual = next((name for name in known if name not in used), known[0])
        while len(known) > 1:
            name = self._named(f"{what}: {', '.join(known)}", usual)
            if name in known:
                return name
            self._write(f"the sync app has no {name} here")
        return known[0]

    def _named(self, what: str, usual: str) -> str:
        answer = self._ask(f"{what} [{usual}]: ").strip() or usual
        name = re.sub(r"[^a-z0-9]+", "_", answer.lower()).strip("_")
        return name if name and name[0].isalpha() else usual

    def _name(self, element: pack.Element, wish: str | None = None) -> str:
        """Return a name that no other element of the recording has."""
        name, number = wish or name_of(element), 2
        base = name
        known = self._recorded.elements
        while name in known and known[name].locators != element.locators:
            name, number = f"{base}_{number}", number + 1
        return name

    def _show(
        self, step: pack.Step, element: pack.Element, others: dict[str, pack.Element]
    ) -> None:
        self._write(f"{type(step).__name__.lower()}: {step.name}")
        for locator in element.locators:
            self._write(f"  found by {said(locator)}")
        then = step.then
        if then.url:
            self._write(f"  then the address is {then.url}")
        if then.visible:
            locators = others[then.visible].locators if then.visible in others else ()
            how = f" ({said(locators[0])})" if locators else ""
            self._write(f"  then {then.visible.replace('_', ' ')} is there{how}")
        if then.figure:
            self._write(f"  then its number is the {(then.equals or '').replace('_', ' ')}")
        if then.file:
            self._write(f"  then there is a file with {len(then.header)} columns")

    def _keep(self, step: pack.Step, elements: dict[str, pack.Element]) -> None:
        names = [one.name for one in self._recorded.steps]
        name, number = step.name, 2
        while name in names:
            name, number = f"{step.name[:55]}_{number}", number + 1
        self._recorded.steps.append(msgspec.structs.replace(step, name=name))
        self._recorded.elements |= elements

    def _settle(self, page: Page) -> None:
        page.wait_for_load_state()
        page.wait_for_timeout(_SETTLES * 1000)


def _pattern(url: str) -> str:
    """Return the path of an address, with `*` for its numbers."""
    path = re.sub(r"^[a-z]+://[^/]*", "", url).partition("?")[0].partition("#")[0] or "/"
    return re.sub(r"(?<=/)(?:\d+(?=/|$)|[^/]*\d{2,}[^/]*)", "*", path)
