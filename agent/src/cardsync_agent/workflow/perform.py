"""Performs a workflow of a pack in the agent's tab: step by step, each with its post-condition.

Nothing here is specific to a marketplace. A workflow may use the pack's fixed verbs, on the pack's
origins, with named values and named files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cardsync_agent import clock
from cardsync_agent.browser.csv_download import CsvDownload, discard_parts
from cardsync_agent.browser.human_pace import HumanPace
from cardsync_agent.browser.origins import filled, is_allowed, origin_of, place_in, shown
from cardsync_agent.browser.page_pictures import Picture, picture
from cardsync_agent.browser.start_browser import SellersBrowser
from cardsync_agent.browser.tab_watch import TabWatch
from cardsync_agent.browser.trouble import (
    BrowserGone,
    Busy,
    ElementLost,
    ForeignOrigin,
    Interrupted,
    MarketplaceDown,
    NotOffered,
    StepNotDone,
    Trouble,
    browser_errors,
    is_changing,
)
from cardsync_agent.browser.your_turn import Turns, YourTurn
from cardsync_agent.workflow import fields, locators, pack
from cardsync_agent.workflow.locators import Target
from cardsync_agent.workflow.post_conditions import unmet
from cardsync_agent.workflow.step_repairs import Repaired, StepRepairs

if TYPE_CHECKING:
    from playwright.sync_api import Page

_OnElement = pack.Click | pack.Fill | pack.Choose | pack.Upload | pack.Download
_LOOK_EVERY = 0.05
_MOST_BEGINNINGS = 6
_MOST_ROUNDS = 500
_ACTION_MS = 10_000.0


@dataclass(frozen=True)
class StepResult:
    """`found_by` describes how the step's element was found. `error` is why the step failed."""

    workflow: str
    step: str
    verb: str
    found_by: str | None = None
    error: str | None = None
    left_out: bool = False


@dataclass
class Outcome:
    """`files` has the files of each download under its name, one for each round. `places` maps a
    step's name to the text that the one `*` of its address matched.
    """

    files: dict[str, list[Path]] = field(default_factory=dict)
    pictures: list[Picture] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)

    def file(self, name: str) -> Path:
        """Return the newest file of that name. Raises KeyError."""
        return self.files[name][-1]


@dataclass(frozen=True)
class Tools:
    """The tools with which a workflow is performed.

    `pause` sleeps, and raises if the agent must stop. `note_change` is called right before a step
    that imports, publishes or deletes, with the step's name.
    """

    browser: SellersBrowser
    pack: pack.Pack
    downloads: Path
    pace: HumanPace
    turns: Turns
    pause: Callable[[float], None]
    repairs: StepRepairs | None = None
    note_change: Callable[[str], None] = lambda step: None
    on_step: Callable[[StepResult], None] = lambda result: None


class _TurnCame(Exception):
    def __init__(self, turn: YourTurn) -> None:
        super().__init__(str(turn))
        self.turn = turn


def perform(
    tools: Tools,
    name: str,
    values: Mapping[str, str] | None = None,
    files: Mapping[str, Path] | None = None,
) -> Outcome:
    """Perform a workflow; start from its beginning again after the person's turn and after a short
    wait that the marketplace asks for. Raises Trouble; its `changed` is whether a step that changes
    something had begun.
    """
    if name not in tools.pack.workflows:
        raise StepNotDone(f"the pack has no workflow {name}")
    discard_parts(tools.downloads)
    if tools.repairs is not None:
        tools.repairs.send_answers()
    run = _Run(tools, name, dict(values or {}), dict(files or {}))
    try:
        return run.perform()
    except Trouble as trouble:
        tools.pause(0.0)  # Ctrl-C may have ended Playwright's driver, too
        trouble.workflow, trouble.step, trouble.changed = name, run.at, run.changed
        trouble.files, trouble.places = run.outcome.files, run.outcome.places
        raise
    finally:
        run.end()


class _Run:
    def __init__(
        self, tools: Tools, name: str, values: dict[str, str], files: dict[str, Path]
    ) -> None:
        self.tools, self.name, self.values, self.given = tools, name, values, files
        self.workflow = tools.pack.workflows[name]
        self.at, self.changed = "", False
        self.outcome = Outcome()
        self._waited = 0.0
        self._watch: TabWatch | None = None
        self._repaired: Repaired | None = None
        self._found_by: str | None = None
        self._filled: tuple[Target, str] | None = None

    def perform(self) -> Outcome:
        for _ in range(_MOST_BEGINNINGS):
            try:
                with browser_errors():
                    return self._from_beginning()
            except _TurnCame as came:
                self._take_turn(came.turn)
            except Busy as busy:
                self._wait_for(busy)
            for brought in self.outcome.files.values():
                for file in brought:
                    file.unlink(missing_ok=True)
            self.outcome = Outcome()
        raise StepNotDone("the marketplace asks for the person again and again")

    def end(self) -> None:
        """Release the tab, which may be closed."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()

    @property
    def page(self) -> Page:
        return self.watch.page

    @property
    def watch(self) -> TabWatch:
        assert self._watch is not None
        return self._watch

    def _from_beginning(self) -> Outcome:
        page = self.tools.browser.page()
        if self._watch is None or self._watch.page is not page:
            self.end()
            browser = self.tools.browser.browser()
            known = (*self.tools.pack.origins, *self.tools.pack.sign_in_origins)
            self._watch = TabWatch(browser, page, known)
        page.set_default_timeout(_ACTION_MS)
        if not is_allowed(page.url, self.tools.pack.origins):
            self.watch.leave()  # the pages to which the person went with our tab are private
        for step in self.workflow.steps:
            self._step(step)
        again = self._steps_of_next_round()
        for _ in range(_MOST_ROUNDS):
            if not self._turn_over():
                break
            for step in again:
                self._step(step)
        return self.outcome

    def _steps_of_next_round(self) -> tuple[pack.Step, ...]:
        """Return the steps to repeat on a next page, without those that open the first page."""
        return tuple(step for step in self.workflow.steps if not isinstance(step, pack.Goto))

    def _turn_over(self) -> bool:
        """Press the element that leads to the next round. Return False if there is no next
        round.
        """
        if self.workflow.repeat is None:
            return False
        target = locators.find(self.page, self.tools.pack.elements[self.workflow.repeat])
        if target is None or not target.on.is_enabled():
            return False
        self._rest()
        seen = fields.look(target.on)
        self._refuse_foreign(seen)
        fields.refuse_frame(seen, self.workflow.repeat)
        before, address = self.watch.navigations, self.page.url
        target.on.click()
        ends = clock.monotonic() + self.tools.pace.element
        while (self.watch.navigations, self.page.url) == (before, address):
            if clock.monotonic() > ends:
                break
            self._pause(_LOOK_EVERY)
        self.page.wait_for_load_state()
        return True

    def _step(self, step: pack.Step) -> None:
        self.at, self._repaired, self._found_by = step.name, None, None
        self._filled = None
        self.watch.begin_step()
        error: str | None = None
        left_out = False
        try:
            with browser_errors():
                # The tab's location before an address is opened does not matter.
                if not isinstance(step, pack.Goto):
                    self._look_around()
                left_out = not self._act(step)
                if not left_out:
                    self._until_it_holds(step)
        except Trouble as trouble:
            error = str(trouble)
            raise
        except _TurnCame as came:
            error = str(came)
            raise
        finally:
            verb = type(step).__name__.lower()
            result = StepResult(self.name, step.name, verb, self._found_by, error, left_out)
            self.tools.on_step(result)

    def _act(self, step: pack.Step) -> bool:
        """Do the step's action. Return False if an optional step has no element."""
        match step:
            case pack.Goto():
                self._rest()
                self._goto(step)
            case pack.Wait():
                self._pause(step.seconds)
            case pack.Screenshot():
                # A picture is optional for the log, so a failure is ignored.
                with suppress(StepNotDone):
                    self.outcome.pictures.append(picture(self.page, self.tools.pack))
            case pack.Human():
                self._ask_person(step)
            case pack.Expect():
                pass
            case pack.Click() | pack.Fill() | pack.Choose() | pack.Upload() | pack.Download():
                return self._act_on_element(step)
        return True

    def _act_on_element(self, step: _OnElement) -> bool:
        target = self._find(step)
        if target is None:
            return False
        self._rest()
        if not is_allowed(self.page.url, self.tools.pack.origins):
            self._look_around()  # a sign-in page has appeared in the meantime
        seen = fields.look(target.on)
        self._refuse_foreign(seen)
        fields.refuse_frame(seen, step.element)
        fields.refuse_submit(seen, step.element)
        if step.changes:
            self._begin_change(step)
        match step:
            case pack.Click():
                target.on.click()
            case pack.Fill():
                fields.refuse_secret(seen, step.element)
                value = self._value(step.value)
                target.on.fill(value)
                self._filled = (target, value)
            case pack.Choose():
                fields.refuse_secret(seen, step.element)
                self._choose(step, target, seen)
            case pack.Upload():
                if seen.type != "file":
                    raise StepNotDone(f"{step.element.replace('_', ' ')} takes no file")
                target.on.set_input_files(self._given(step.file))
            case pack.Download():
                self._download(step, target)
        return True

    def _begin_change(self, step: pack.Step) -> None:
        self.changed = True
        self.tools.note_change(step.name)

    def _goto(self, step: pack.Goto) -> None:
        from playwright.sync_api import Error, TimeoutError

        try:
            path = filled(step.path, self.values)
        except KeyError as lacking:
            raise StepNotDone(f"there is no value {lacking.args[0]}") from lacking
        if step.changes:
            self._begin_change(step)
        try:
            self.page.goto(
                f"{self.tools.pack.origins[0]}{path}",
                wait_until="domcontentloaded",
                timeout=step.then.within * 1000,
            )
        except TimeoutError as late:
            raise MarketplaceDown(
                f"the marketplace does not answer within {step.then.within} s"
            ) from late
        except Error as error:
            self.watch.check()
            if "net::ERR" in str(error) and "ERR_ABORTED" not in str(error):
                raise MarketplaceDown(
                    "the marketplace cannot be reached; is the network there?"
                ) from error
            if "interrupted by another navigation" not in str(error):
                raise

    def _find(self, step: _OnElement) -> Target | None:
        """Wait for the step's element. Raises ElementLost, unless the step is optional."""
        element, pace = self.tools.pack.elements[step.element], self.tools.pace
        ends = clock.monotonic() + (pace.optional if step.optional else pace.element)
        while True:
            target = self._seen(step, element)
            if target is not None:
                self._found_by = target.found_by
                return target
            if clock.monotonic() > ends:
                break
            self._pause(_LOOK_EVERY)
            self._look_around()
        if step.optional:
            return None
        if not element.recorded and not element.locators:
            raise ElementLost(f"{step.element.replace('_', ' ')} must be recorded first")
        return self._repair(step)

    def _seen(self, step: _OnElement, element: pack.Element) -> Target | None:
        """Look once, by the pack's locators and then by an earlier repair."""
        from playwright.sync_api import Error

        try:
            target = locators.find(self.page, element, hidden_too=isinstance(step, pack.Upload))
            if target is None and self.tools.repairs is not None:
                self._repaired = self.tools.repairs.known(self.page, self.name, step, element)
                target = self._repaired.target if self._repaired else None
        except Error as error:
            if is_changing(error):
                return None
            raise
        return target

    def _repair(self, step: _OnElement) -> Target:
        self.watch.check_background()
        missing = (
            f"{step.element.replace('_', ' ')} is not on the page {shown(self.page.url)},"
            " or several times"
        )
        if self.tools.repairs is None:
            raise ElementLost(missing)
        self._repaired = self.tools.repairs.ask(self.page, self.name, step, step.element, missing)
        self._found_by = self._repaired.target.found_by
        return self._repaired.target

    def _refuse_foreign(self, seen: fields.Seen) -> None:
        """Raise before an action that would lead to a foreign origin."""
        if origin_of(seen.leads_to) and not is_allowed(seen.leads_to, self.tools.pack.origins):
            where = origin_of(seen.leads_to)
            self.watch.leave()
            raise ForeignOrigin(
                f"the page leads to {where}, which is no address of this marketplace; the sync app"
                " left it"
            )

    def _choose(self, step: pack.Choose, target: Target, seen: fields.Seen) -> None:
        from playwright.sync_api import TimeoutError

        if seen.tag == "select":
            option = step.option if step.value is None else self._value(step.value)
            if option is None:
                raise StepNotDone(f"{step.element.replace('_', ' ')} has no option to choose")
            try:
                # By label or value. This waits for options that arrive late.
                target.on.select_option(option)
            except TimeoutError as late:
                if fields.offers(target.on, option):
                    raise
                raise NotOffered(f"{step.element.replace('_', ' ')} has no {option}") from late
        elif seen.type in ("checkbox", "radio"):
            target.on.check()
        else:
            raise StepNotDone(f"{step.element.replace('_', ' ')} has no options")

    def _download(self, step: pack.Download, target: Target) -> None:
        number = len(self.outcome.files.get(step.file, ())) + 1
        into = self.tools.downloads / f"{self.name}-{step.file}-{number}.csv"
        into.unlink(missing_ok=True)
        origins = self.tools.pack.origins
        with CsvDownload(self.tools.browser.browser(), self.page, into.parent, origins) as coming:
            target.on.click(no_wait_after=True)
            ends = clock.monotonic() + step.then.within
            while not coming.has_begun():
                if clock.monotonic() > ends:
                    self.watch.check_background()
                    raise StepNotDone(f"no file came within {step.then.within} s")
                self._pause(_LOOK_EVERY)
                self._look_around()
            brought = coming.take(into, lambda: self._pause(_LOOK_EVERY))
        self.outcome.files.setdefault(step.file, []).append(brought)

    def _ask_person(self, step: pack.Human) -> None:
        turn = YourTurn("human", shown(self.page.url), step.message)
        with self.watch.resting():
            self.tools.turns.wait_until(
                self.page,
                turn,
                lambda: (
                    is_allowed(self.page.url, self.tools.pack.origins) and self._unmet(step) is None
                ),
            )

    def _until_it_holds(self, step: pack.Step) -> None:
        """Wait for the post-condition; the result of a repair depends on it."""
        try:
            self._wait_for_condition(step)
        except Trouble as trouble:
            if self._repaired and self.tools.repairs and not trouble.may_try_again:
                self.tools.repairs.did_not_hold(self._repaired, str(trouble))
            raise
        if self._repaired and self.tools.repairs:
            self.tools.repairs.held(self._repaired)

    def _wait_for_condition(self, step: pack.Step) -> None:
        ends = clock.monotonic() + step.then.within
        while True:
            self._look_around()
            problem = self._unmet(step)
            if problem is None:
                if step.then.url and (place := place_in(step.then.url, self.page.url)):
                    self.outcome.places[step.name] = place
                return
            if clock.monotonic() > ends:
                break
            self._pause(_LOOK_EVERY)
        self.watch.check_background()
        status = self.watch.status()
        answer = f" (the marketplace answered {status})" if status and status >= 400 else ""
        if self.watch.asked:
            answer += "; the page asked a question, which the sync app answered with no"
        raise StepNotDone(f"{problem}, {step.then.within} s after {step.name}{answer}")

    def _unmet(self, step: pack.Step) -> str | None:
        from playwright.sync_api import Error

        try:
            if self._filled and not fields.holds(self._filled[0].on, self._filled[1]):
                assert isinstance(step, pack.Fill)
                return f"{step.element.replace('_', ' ')} does not hold what was written"
            return unmet(self.page, self.tools.pack, step.then, self.values, self.outcome.files)
        except Error as error:
            if is_changing(error):
                return "the page is still changing"
            raise

    def _look_around(self) -> None:
        """Raise if the tab is on a page where work cannot continue: foreign, broken, or the
        person's turn.
        """
        from playwright.sync_api import Error

        if self.page.is_closed():
            raise BrowserGone("the tab was closed meanwhile; it is opened again at the next try")
        self.watch.check()
        try:
            turn = self.tools.turns.now(self.page)
        except Error as error:
            if is_changing(error):
                return
            raise
        if turn is not None:
            raise _TurnCame(turn)

    def _take_turn(self, turn: YourTurn) -> None:
        with browser_errors(), self.watch.resting():
            self.tools.turns.wait(self.page, turn)
        if self.changed:
            raise Interrupted(
                f"the marketplace wanted you ({turn.to_do}) after {self.at} had begun; the sync app"
                " looks at what was done before it goes on"
            )

    def _wait_for(self, busy: Busy) -> None:
        """Wait as long as the marketplace asks, within the limit; then begin again."""
        self._waited += busy.retry_after
        if self.changed or self._waited > self.tools.pace.busy_most:
            raise busy
        self._pause(busy.retry_after)

    def _value(self, name: str) -> str:
        if name not in self.values:
            raise StepNotDone(f"there is no value {name}")
        return self.values[name]

    def _given(self, name: str) -> Path:
        if name not in self.given:
            raise StepNotDone(f"there is no file {name}")
        return self.given[name]

    def _rest(self) -> None:
        if (seconds := self.tools.pace.rest()) > 0:
            self._pause(seconds)

    def _pause(self, seconds: float) -> None:
        """Sleep in slices, between which browser events are processed and the agent may be stopped."""
        ends = clock.monotonic() + seconds
        while (left := ends - clock.monotonic()) > 0:
            self.tools.pause(0.0)
            self.page.wait_for_timeout(min(left, 0.25) * 1000)
        self.tools.pause(0.0)
