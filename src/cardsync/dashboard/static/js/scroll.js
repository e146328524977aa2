// Lets the table of cards scroll through all results of a search. The document has only the pages
// of rows around the visible ones, and two gaps as high as the other rows. Without this script the
// table has pages.
const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const PAGES_KEPT = 6;
const RESTS_AFTER_MS = 300;
const LATE_AFTER_MS = 200;

let grid = null;
const NOTHING = { stop: new AbortController() };
let asked = NOTHING;
let order = { address: "", ids: null };

// Loads the ids of all rows in their order once, so that rows do not move while prices change.
function orderOf(address) {
  if (order.address !== address) {
    const ids = fetch(address).then(answer => (answer.ok ? answer.json() : Promise.reject(answer)));
    order = { address, ids: ids.then(list => Float64Array.from(list)) };
    ids.catch(() => (order = { address: "", ids: null }));
  }
  return order.ids;
}

function gap() {
  const body = document.createElement("tbody");
  body.className = "gap no-print";
  body.setAttribute("aria-hidden", "true");
  body.append(filler(0));
  return body;
}

function filler(height) {
  const row = document.createElement("tr");
  const cell = row.insertCell();
  cell.colSpan = grid?.columns || 1;
  cell.style.height = `${height}px`;
  row.className = "gap";
  row.hidden = height <= 0;
  return row;
}

const pages = () => all("tbody[data-page]", grid.table);
const numberOf = page => Number(page.dataset.page);
// Returns whether the table is still as this script left it: a form may have replaced its parts by
// those of another page.
const intact = () =>
  Boolean(grid?.table.isConnected) &&
  grid.table.matches(".fixed") &&
  (grid.total <= grid.size ||
    [grid.above, grid.below].every(one => one.isConnected && one.matches(".gap")));
const scrolls = () => getComputedStyle(grid.region).overflowY !== "visible";
const scroller = () => (scrolls() ? grid.region : document.scrollingElement);

// Prepares the table when the page is loaded, or when a form has replaced the table; the scroll
// position stays. All is measured before anything is changed, so that the browser lays out once.
function begin() {
  const table = find("table[data-order]");
  const body = table && find("tbody[data-page]", table);
  if (!body) return (grid = null);
  // The page may show its rows before all of them are counted. A page that returns knows the count
  // of before.
  const total = Number(find("#sum [data-total]")?.dataset.total ?? history.state?.total ?? 0);
  if (grid?.table === table && intact()) return count(total);
  const before = grid?.order === table.dataset.order ? grid.scrolled : null;
  all("tbody.gap, tbody[data-kept]", table).forEach(one => one.remove());
  grid = {
    table,
    order: table.dataset.order,
    region: table.closest(".table"),
    size: Number(table.dataset.perPage),
    height: body.rows[0].getBoundingClientRect().height,
    kept: document.createElement("tbody"),
  };
  grid.scrolled = scroller().scrollTop;
  grid.kept.hidden = true;
  grid.kept.dataset.kept = "";
  hold();
  [grid.above, grid.below] = [gap(), gap()];
  sizes.disconnect();
  sizes.observe(grid.region);
  numberRows(body);
  count(total);
  const first = (numberOf(body) - 1) * grid.size * grid.height;
  const to = before ?? (history.state?.top || (first && grid.scrolled + first));
  if (to) grid.scrolled = scroller().scrollTop = to;
}

// Makes the table as high as all rows, or as those up to the shown ones while `total` is unknown. A
// table of one page has no gaps.
function count(total) {
  const last = pages().at(-1);
  grid.total = total || (numberOf(last) - 1) * grid.size + last.rows.length;
  grid.table.ariaRowCount = String(total ? total + 1 : -1);
  grid.table.classList.toggle("scrolls", total > grid.size);
  if (grid.total <= grid.size) return;
  if (!grid.above.isConnected) {
    pages()[0].before(grid.above);
    last.after(grid.below, grid.kept);
  }
  stretch();
}

// Fixes the columns' widths, so that they do not change while rows are added and removed.
function hold() {
  grid.width = grid.region.clientWidth;
  const heads = [...grid.table.tHead.rows[0].cells];
  grid.table.classList.remove("fixed");
  for (const head of heads) head.style.width = "";
  const widths = heads.map(head => head.getBoundingClientRect().width);
  heads.forEach((head, index) => (head.style.width = widths[index] ? `${widths[index]}px` : ""));
  grid.table.classList.add("fixed");
  grid.columns = widths.filter(Boolean).length;
  for (const cell of all("tr.gap > td", grid.table)) cell.colSpan = grid.columns;
}

const sizes = new ResizeObserver(() => {
  if (!intact()) return;
  if (grid.region.clientWidth !== grid.width) hold();
  const height = find("tr:not(.gap)", pages()[0])?.getBoundingClientRect().height;
  if (!height || height === grid.height) return;
  grid.height = height;
  stretch();
});

// Numbers the rows for screen readers. The table's head is row 1.
function numberRows(page) {
  const before = (numberOf(page) - 1) * grid.size;
  [...page.rows].forEach((row, index) => (row.ariaRowIndex = String(before + index + 2)));
}

function stretch() {
  const shown = pages().map(numberOf);
  const before = (shown[0] - 1) * grid.size;
  const after = grid.total - Math.min(shown.at(-1) * grid.size, grid.total);
  for (const [part, rows] of [[grid.above, before], [grid.below, after]]) {
    part.rows[0].cells[0].style.height = `${rows * grid.height}px`;
    part.rows[0].hidden = rows <= 0;
  }
}

// Returns the numbers of the first visible row and of the first row below the visible ones, from 0.
function inSight() {
  const box = scrolls() ? grid.region.getBoundingClientRect() : { top: 0, bottom: innerHeight };
  const first = grid.above.rows[0].hidden ? pages()[0] : grid.above;
  const start = first.getBoundingClientRect().top;
  const top = Math.max(box.top, 0) + grid.table.tHead.offsetHeight;
  const bottom = Math.min(box.bottom, innerHeight);
  const rows = [(top - start) / grid.height, (bottom - start) / grid.height];
  // Of a row of which less than a hundredth is visible nothing is seen.
  return [Math.floor(rows[0] + 0.01), Math.ceil(rows[1] - 0.01)];
}

// Returns the first and the last visible page, and the last page of all.
function seen() {
  const last = Math.ceil(grid.total / grid.size);
  const [from, to] = inSight();
  const at = row => Math.max(1, Math.min(last, Math.floor(row / grid.size) + 1));
  return [at(from), at(to - 1), last];
}

// Returns the next page to load: a visible one, else a neighbor of the visible ones.
function missing() {
  const [from, to, last] = seen();
  const there = new Set(pages().map(numberOf));
  const wanted = [];
  for (let page = from; page <= to; page++) wanted.push(page);
  if (to < last) wanted.push(to + 1);
  if (from > 1) wanted.push(from - 1);
  const page = wanted.find(one => !there.has(one));
  return { page, inSight: page >= from && page <= to };
}

// Loads missing pages. A request for a page that is no longer visible is canceled. After a jump,
// the neighbors are loaded only once the scrolling has stopped.
async function fill() {
  let leapt = false;
  while (intact()) {
    const { page, inSight } = missing();
    if (page === asked.page || (leapt && !inSight)) return;
    asked.stop.abort();
    if (!page) return;
    leapt ||= inSight;
    const mine = (asked = { page, stop: new AbortController() });
    const late = inSight && setTimeout(() => grid?.table.classList.add("late"), LATE_AFTER_MS);
    const came = await bring(page, mine.stop.signal).catch(() => false);
    clearTimeout(late);
    grid?.table.classList.remove("late");
    if (mine !== asked) return;
    asked = NOTHING;
    if (!came) return;
  }
}

// Loads one page of rows, and removes pages that are far from it.
async function bring(number, signal) {
  const mine = grid;
  const ids = await orderOf(mine.order).catch(() => null);
  if (!ids) return giveUp();
  mine.total = ids.length;
  const wanted = ids.subarray((number - 1) * mine.size, number * mine.size);
  if (!wanted.length) return false;
  const query = new URLSearchParams({ ids: wanted.join(","), page: number });
  const more = mine.table.dataset.more;
  const answer = await fetch(more + (more.includes("?") ? "&" : "?") + query, { signal });
  if (!answer.ok || answer.redirected) return false;
  const found = document.createElement("div");
  found.innerHTML = await answer.text();
  if (signal.aborted) return false;
  const page = find("tbody[data-page]", found);
  if (mine !== grid || !intact()) return true;
  const lost = wanted.length - page.rows.length;
  if (lost) page.append(filler(lost * grid.height));
  numberRows(page);
  place(page);
  stretch();
  document.dispatchEvent(new CustomEvent("cardsync:rows"));
  return true;
}

// If the ids cannot be loaded, the table has pages, as without scripts.
function giveUp() {
  if (intact()) {
    for (const part of [grid.above, grid.below]) part.remove();
    grid.table.classList.remove("scrolls");
  }
  grid = null;
  return false;
}

// After a jump the rows in sight are laid out first. The others of their page follow once those are
// painted; until then, gaps are as high.
function layOutLater(page) {
  const before = (numberOf(page) - 1) * grid.size;
  const [from, to] = inSight().map(row => Math.max(0, row - before));
  const rows = [...page.rows];
  const parts = [rows.slice(0, from), rows.slice(to)].filter(part => part.length);
  const gaps = parts.map(part => filler(part.length * grid.height));
  parts.forEach((part, index) => {
    part[0].before(gaps[index]);
    for (const row of part) row.remove();
  });
  const follow = () => {
    if (!gaps.every(gap => gap.isConnected)) return;
    gaps.forEach((gap, index) => gap.replaceWith(...parts[index]));
    tickAgain(page);
    document.dispatchEvent(new CustomEvent("cardsync:rows"));
  };
  if (gaps.length) requestAnimationFrame(() => setTimeout(follow));
}

// Ticks the rows of a page that were ticked when they were scrolled away.
function tickAgain(page) {
  for (const box of all("input[name=card_ids]", page)) {
    const kept = find(`input[value="${box.value}"]`, grid.kept);
    if (!kept) continue;
    box.checked = true;
    kept.closest("tr").remove();
  }
}

function place(page) {
  const number = numberOf(page);
  const there = pages();
  const [first, last] = [numberOf(there[0]), numberOf(there.at(-1))];
  if (number === last + 1) there.at(-1).after(page);
  else if (number === first - 1) there[0].before(page);
  else {
    layOutLater(page);
    grid.above.after(page);
    there.forEach(leave);
  }
  tickAgain(page);
  const now = pages();
  if (now.length > PAGES_KEPT) leave(number === numberOf(now[0]) ? now.at(-1) : now[0]);
}

// Removes a page of rows. Its ticked rows are kept in a hidden part, and the focus moves to the
// table.
function leave(page) {
  if (page.contains(document.activeElement)) grid.region.focus({ preventScroll: true });
  for (const box of all("input[name=card_ids]:checked", page)) grid.kept.append(box.closest("tr"));
  page.remove();
}

let later = 0;
document.addEventListener(
  "scroll",
  () => {
    if (!grid) show();
    if (!intact()) return;
    grid.scrolled = scroller().scrollTop;
    fill();
    clearTimeout(later);
    later = setTimeout(rest, RESTS_AFTER_MS);
  },
  { capture: true, passive: true },
);

// After the scrolling has stopped: load the neighboring pages, and put the page's number into the
// address.
function rest() {
  if (!intact()) return;
  fill();
  const [page] = seen();
  const address = new URL(location.href);
  if (page > 1) address.searchParams.set("page", page);
  else address.searchParams.delete("page");
  keep(address);
  const now = find("[data-page-now]", grid.region);
  if (now) now.textContent = page.toLocaleString();
}

// Stores the scroll position, so that a member who reloads the page, or returns from a card, sees
// the same rows.
function keep(address = location.href) {
  const { total } = grid;
  history.replaceState({ ...history.state, top: scroller().scrollTop, total }, "", address);
}
addEventListener("pagehide", () => intact() && keep());
document.addEventListener("reset", () => grid?.kept.replaceChildren());
// The gaps wait until the browser is idle, unless the table had them, or shows another place than
// its beginning. Rows below the screen follow in two parts once the columns have their widths.
const html = document.documentElement;
function show() {
  begin();
  delete html.dataset.table;
}
const idle = window.requestIdleCallback ?? setTimeout;
function prepare() {
  if (grid) return begin();
  if (history.state?.top || find("tbody[data-page]")?.dataset.page > 1) return show();
  idle(() => {
    begin();
    idle(() => {
      if (html.dataset.table) html.dataset.table = "half";
      idle(show);
    });
  });
}
document.addEventListener("htmx:after:swap", prepare);
prepare();
