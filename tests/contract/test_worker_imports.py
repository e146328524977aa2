"""A worker loads nothing that only web processes need: its memory is for frames."""

import subprocess
import sys

# What each would cost a worker, in MB: webauthn 13, litestar 25.
FOREIGN = {"webauthn", "litestar", "granian", "jinja2", "segno", "alembic"}


def test_a_worker_loads_no_library_of_web_processes():
    code = "import sys, cardsync.processes.worker; print(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not FOREIGN & set(told.stdout.split())
