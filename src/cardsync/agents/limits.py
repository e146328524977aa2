"""The limits of this district."""

from __future__ import annotations

SCREENSHOT_BYTES = 2_000_000
SCREENSHOT_SIDE = 8_192
CAPABILITIES_BYTES = 2_000
SNIPPET_BYTES = 64_000
STEP_NAME_CHARACTERS = 200
AGENT_CHARACTERS = 200
SELECTOR_CHARACTERS = 1_000
# A correction is disabled after this many failures.
CORRECTION_FAILURES = 3
# If this many sellers have the same verdict on a correction, it applies to all sellers.
SELLERS_TO_SHARE = 3
# Only this many of a step's newest corrections are read.
CORRECTIONS_READ = 500

TASKS_CLAIMED = 10

CYCLES_PER_PAGE_MOST = 100
TASKS_PER_PAGE = 50
TASKS_PER_PAGE_MOST = 200
TASK_RESULT_BYTES = 100_000

RELEASE_BYTES = 500_000_000
RELEASE_NAME_CHARACTERS = 100
