"""The commands about workflows: `repairs`, `workflow test` and `record`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import msgspec

from cardsync_agent import durable
from cardsync_agent.browser.find_browser import VARIABLE, Found, find
from cardsync_agent.browser.start_browser import SellersBrowser, profile_of
from cardsync_agent.browser.trouble import Trouble
from cardsync_agent.commands.options import Commands, add_agents_folder, new_command
from cardsync_agent.events import Reporter
from cardsync_agent.kept_repairs import KeptRepairs
from cardsync_agent.marketplace.open_browser import pinned_keys
from cardsync_agent.state import HOME, make_home
from cardsync_agent.usage import UsageProblem
from cardsync_agent.workflow.pack import WORKFLOWS, BadPack, Pack, TurnKind, read
from cardsync_agent.workflow.pack_folder import NoPack, PackFolder, recorded_pack
from cardsync_agent.workflow.record import Recorder
from cardsync_agent.workflow.recorded_pages import BadPages
from cardsync_agent.workflow.recordings import OtherMarketplace, added
from cardsync_agent.workflow.try_pack import line_of, try_pack


def add_workflow_commands(
    commands: Commands,
    add_output: Callable[[argparse.ArgumentParser], None],
) -> None:
    repairs = new_command(
        commands,
        _repairs,
        "repairs",
        help="show what the sync app found in place of lost buttons, and say what is right",
        description="Show what the sync app found in place of lost buttons, and say what is right."
        " A button that changes something is used only after you confirm it.",
    )
    add_agents_folder(repairs, required=True)
    answer = repairs.add_mutually_exclusive_group()
    answer.add_argument("--confirm", type=int, metavar="N", help="this one is right: use it")
    answer.add_argument("--wrong", type=int, metavar="N", help="this one is wrong: never use it")
    add_output(repairs)
    workflow = commands.add_parser("workflow", help="try a pack of workflows")
    of_workflow = workflow.add_subparsers(required=True, metavar="COMMAND")
    test = new_command(
        of_workflow,
        _test,
        "test",
        help="run a pack on recorded pages, in a browser",
        description="Run a pack on recorded pages, in a browser, and say of each step how its"
        " element was found and whether its post-condition held.",
    )
    test.add_argument("pack", metavar="PACK", help="the pack, a JSON file")
    test.add_argument(
        "--pages", metavar="DIR", help="recorded pages with an index.json; default: beside the pack"
    )
    test.add_argument("--show", action="store_true", help="show the browser's window")
    add_output(test)
    _add_record(commands, add_output)


def _add_record(
    commands: Commands,
    add_output: Callable[[argparse.ArgumentParser], None],
) -> None:
    record = new_command(
        commands,
        _record,
        "record",
        help="record a workflow: click through it once, and confirm each step",
        description="Record a workflow: click through it once in the browser, and confirm each step"
        " in the terminal. What you type is not read. Or record a page that is your turn.",
    )
    add_agents_folder(record, required=True)
    record.add_argument("--marketplace", required=True, metavar="NAME", help="as in the pack")
    record.add_argument(
        "--origin", metavar="URL", help="like https://seller.example; default: that of the pack"
    )
    what = record.add_mutually_exclusive_group(required=True)
    what.add_argument("--workflow", choices=WORKFLOWS, metavar="NAME")
    what.add_argument(
        "--your-turn", choices=get_args(TurnKind), help="a page at which the sync app waits for you"
    )
    record.add_argument(
        "--locale", default="en-US", help="the language of its pages; default en-US"
    )
    record.add_argument("--start", default="/", metavar="PATH", help="where it begins; default /")
    record.add_argument(
        "--pack", metavar="FILE", help="the pack to add to; default: the one in the folder"
    )
    add_output(record)


def _test(arguments: argparse.Namespace, say: Reporter) -> int:
    file = Path(arguments.pack).expanduser()
    folder = Path(arguments.pages).expanduser() if arguments.pages else file.parent / "pages"
    pack = _read(file)
    try:
        failures = try_pack(
            pack,
            folder,
            _browser(),
            lambda one: say(
                "step_tried", line_of(one), workflow=one.workflow, step=one.step, error=one.error
            ),
            headless=not arguments.show,
        )
    except BadPages as problem:
        raise UsageProblem(str(problem)) from problem
    except Trouble as trouble:
        say("problem", str(trouble), problem=True)
        return 1
    failed = len(failures)
    text = f"{len(pack.workflows) - failed} of {len(pack.workflows)} workflows hold"
    say("pack_tried", text, problem=failed > 0, failed=failed)
    return 1 if failed else 0


def _record(arguments: argparse.Namespace, say: Reporter) -> int:
    home = make_home(Path(arguments.folder).expanduser().resolve())
    kept = recorded_pack(home, arguments.marketplace)
    file = Path(arguments.pack).expanduser() if arguments.pack else kept
    before = _before(home, arguments, say, file)
    origin = (arguments.origin or (before.origins[0] if before else "")).rstrip("/")
    if not origin:
        raise UsageProblem("there is no pack of this marketplace yet: give its --origin")
    browser = SellersBrowser(_browser(), profile_of(home))
    try:
        name = arguments.workflow
        recorder = Recorder(browser, origin, name or "", input, lambda text: say("recording", text))
        if name:
            recorded = recorder.record(arguments.start)
        else:
            recorded = recorder.record_turn(arguments.start, arguments.your_turn)
        made = added(before, arguments.marketplace, origin, name, recorded)
    except (Trouble, BadPack, OtherMarketplace) as trouble:
        say("problem", f"nothing was written: {trouble}", problem=True)
        return 1
    finally:
        browser.release()
    file.parent.mkdir(parents=True, exist_ok=True)
    durable.write(file, msgspec.json.format(msgspec.json.encode(made), indent=2) + b"\n")
    what = f"{name} has {len(recorded.steps)} steps" if name else f"{arguments.your_turn} is known"
    say("recorded", f"{what} in {file}, which is version {made.version}")
    return 0


def _before(home: Path, arguments: argparse.Namespace, say: Reporter, file: Path) -> Pack | None:
    """Return the pack to which the recording is added: the pack in the named file, or the pack in
    use.
    """
    if arguments.pack:
        return _read(file) if file.exists() else None
    folder = PackFolder(home, pinned_keys([]), say)
    try:
        return folder.newest(arguments.marketplace, arguments.locale)
    except NoPack:
        return None


def _read(file: Path) -> Pack:
    try:
        return read(file.read_bytes())
    except (OSError, BadPack) as problem:
        raise UsageProblem(f"{file}: {problem}") from problem


def _browser() -> Found:
    try:
        found = find(os.environ)
    except Trouble as problem:
        raise UsageProblem(str(problem)) from problem
    if found is None:
        raise UsageProblem(
            f"there is no Chrome, Edge or Chromium; install one, or name it in {VARIABLE}"
        )
    return found


def _repairs(arguments: argparse.Namespace, say: Reporter) -> int:
    home = Path(arguments.folder).expanduser().resolve() / HOME
    if not home.is_dir():
        raise UsageProblem(f"{arguments.folder} is no folder of a sync app")
    kept = KeptRepairs(home)
    if arguments.confirm is None and arguments.wrong is None:
        for one in kept.all():
            say("repair", one.line(), number=one.number, state=one.state, selector=one.found)
        return 0
    if arguments.confirm is not None:
        decided = kept.decide(arguments.confirm, "confirmed")
    else:
        decided = kept.decide(arguments.wrong, "wrong")
    if decided is None:
        raise UsageProblem(f"there is no repair {arguments.confirm or arguments.wrong}")
    is_right = decided.state == "confirmed"
    text = f"repair {decided.number} is {'used from now on' if is_right else 'never used again'}"
    say("repair_decided", text, number=decided.number, state=decided.state)
    return 0
