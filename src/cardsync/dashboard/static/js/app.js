// Keys and small conveniences of every page. Pages also work without this script.
const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// Copies the text before a copy button to the clipboard. Without https a browser supports only
// execCommand.
document.addEventListener("click", async event => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  const code = button.previousElementSibling;
  try {
    await navigator.clipboard.writeText(code.textContent);
  } catch {
    getSelection().selectAllChildren(code);
    document.execCommand("copy");
  }
  find("span", button).textContent = "Copied";
});

// Adds this session's form token to the requests of htmx.
document.addEventListener("htmx:config:request", event => {
  const headers = event.detail?.ctx?.request?.headers;
  if (headers) headers["X-CSRF-Token"] = find("meta[name=csrf-token]").content;
});

// htmx looks at every attribute of all elements that it processes, for scripts in attributes. The
// pages have none, so htmx gets only the elements with requests.
const REQUESTS = "[data-hx-get], [data-hx-post]";
document.addEventListener("htmx:before:process", event => {
  if (event.target.matches(REQUESTS)) return;
  event.preventDefault();
  for (const element of all(REQUESTS, event.target)) htmx.process(element);
});

// Keeps in a cookie which groups of the navigation are open, because the server draws the next
// page.
for (const group of all("#nav details[data-group]"))
  group.addEventListener("toggle", () => {
    const opened = all("#nav details[open][data-group]").map(one => one.dataset.group).join(".");
    document.cookie = `groups=${opened}; path=/; max-age=31536000; samesite=lax`;
  });

// Opens a dialog. showModal() returns the focus to the button when the dialog closes.
function open(id) {
  const dialog = document.getElementById(id);
  if (dialog && !dialog.open) dialog.showModal();
}

// Keys for rows: j and k move, x selects, Enter opens the row's first link. In a queue, a accepts
// the row, d dismisses it and s snoozes it.
const rows = () => all("[data-rows] > tr, [data-rows] > li");
// The position of the row that was decided in a queue: the row that takes its place becomes
// current.
let stays = -1;
const currentRow = () => find(":is([data-rows] > tr, [data-rows] > li)[aria-current=true]");
function go(step) {
  const list = rows();
  if (!list.length) return;
  const before = currentRow();
  const next = before ? list.indexOf(before) + step : list.findIndex(isInSight);
  before?.removeAttribute("aria-current");
  stays = -1;
  moveTo(next);
}

function moveTo(place) {
  const list = rows();
  const row = list[Math.max(0, Math.min(list.length - 1, place))];
  row?.setAttribute("aria-current", "true");
  if (row) find("a, button", row)?.focus({ preventScroll: true });
  row?.scrollIntoView({ block: "nearest" });
}

function isInSight(row) {
  const box = row.getBoundingClientRect();
  const middle = [box.left + box.width / 2, box.top + box.height / 2];
  return row.contains(document.elementFromPoint(...middle));
}

function select() {
  const row = currentRow();
  if (row) find("input[type=checkbox]", row)?.click();
}

function decide(key) {
  const row = currentRow();
  const button = row && find(`[data-row-key="${CSS.escape(key)}"] button`, row);
  if (!button) return;
  stays = rows().indexOf(row);
  button.click();
}

// The palette: pages, the actions of this page, recently opened results, and what the server finds
// for the typed words.
const palette = document.getElementById("palette");
const list = document.getElementById("palette-list");
const RECENT = 6;
function options() {
  return all("li:not([hidden])", list);
}
function mark(index) {
  const shown = options();
  all("li", list).forEach(item => item.setAttribute("aria-selected", "false"));
  const chosen = shown[(index + shown.length) % shown.length];
  if (!chosen) return;
  chosen.setAttribute("aria-selected", "true");
  chosen.id ||= `option-${Math.random().toString(36).slice(2)}`;
  find("#palette-text").setAttribute("aria-activedescendant", chosen.id);
  chosen.scrollIntoView({ block: "nearest" });
}
function marked() {
  return options().findIndex(item => item.getAttribute("aria-selected") === "true");
}
function recent() {
  try {
    return JSON.parse(localStorage.getItem("recent") || "[]");
  } catch {
    return [];
  }
}
function choose(item) {
  palette.close();
  if (item.dataset.href) {
    if (item.dataset.found) {
      const one = { href: item.dataset.href, text: item.dataset.found };
      const others = recent().filter(other => other.href !== one.href);
      localStorage.setItem("recent", JSON.stringify([one, ...others].slice(0, RECENT)));
    }
    location.href = item.dataset.href;
  } else {
    item.does?.focus();
    item.does?.click();
  }
}
function option(...children) {
  const item = document.createElement("li");
  item.setAttribute("role", "option");
  item.setAttribute("aria-selected", "false");
  item.append(...children);
  return item;
}
// A member's palette has the same pages everywhere, so the palette requests them when it first
// opens, and the browser caches them.
let pages;
function bringPages() {
  pages ||= fetch(list.dataset.from)
    .then(async answer => {
      if (!answer.ok) throw new Error(answer.statusText);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const items = all("li", page).map(item => document.adoptNode(item));
      const own = find("li[data-own]", list);
      if (own) own.before(...items);
      else list.append(...items);
      filter();
    })
    .catch(() => {
      pages = undefined;
      find("#palette-state").textContent = find("#palette-state").dataset.textFailed;
    });
}
function openPalette(words = "") {
  all("li:is([data-own], [data-found])", list).forEach(item => item.remove());
  for (const action of all("main .page-head .acts :is(a, button), [data-command]")) {
    if (action.closest(".selection") && !action.checkVisibility()) continue;
    const item = option(action.dataset.command || action.textContent.trim());
    if (!item.textContent) continue;
    item.dataset.own = "";
    item.does = action;
    list.append(item);
  }
  for (const one of recent().reverse()) {
    const item = option(one.text);
    item.dataset.href = one.href;
    item.dataset.found = one.text;
    item.dataset.recent = "";
    list.prepend(item);
  }
  const text = find("#palette-text");
  text.value = words;
  open("palette");
  text.focus();
  filter();
  bringPages();
}
const PARTS = ["cards", "names", "orders"];
// Sold-out cards fill the list if fewer cards in stock match.
const CARDS = 6;
// A search starts after a pause in typing; each typed character cancels the previous search.
const REST_MS = 50;
let asked = new AbortController();
let timer = 0;
// How well an entry fits the words, from 0 (best). dashboard/goals.py ranks in the same way.
const NONE = 4;
function rank(item, words) {
  const name = (item.dataset.name || item.textContent).trim().toLowerCase();
  const others = (item.dataset.words || "").toLowerCase();
  if (!words) return item.dataset.words && !find("kbd", item) ? NONE : 0;
  if (name.startsWith(words)) return 0;
  if (name.includes(words)) return 1;
  if (` ${others}`.includes(` ${words}`)) return 2;
  const known = `${name} ${others}`.split(/\s+/);
  const typed = words.split(/\s+/);
  return typed.every(word => known.some(one => one.startsWith(word))) ? 3 : NONE;
}
function filter() {
  const words = find("#palette-text").value.trim().toLowerCase();
  all("li[data-found]:not([data-recent])", list).forEach(item => item.remove());
  const ranks = new Map(all("li", list).map(item => [item, rank(item, words)]));
  for (const [item, at] of ranks) item.hidden = at === NONE;
  if (words) list.append(...[...ranks.keys()].sort((one, other) => ranks.get(one) - ranks.get(other)));
  find("#palette-state").textContent = "";
  mark(0);
  clearTimeout(timer);
  asked.abort();
  asked = new AbortController();
  if (words) timer = setTimeout(ask, REST_MS, words, asked.signal);
}
// Adds the server's results below the page's own entries, each part as it arrives. The marked entry
// does not change.
async function ask(words, signal) {
  const came = await Promise.allSettled(PARTS.map(part => bring(part, words, signal)));
  if (signal.aborted) return;
  const failed = came.some(part => part.status === "rejected");
  const state = find("#palette-state");
  const nothing = options().length ? "" : state.dataset.textNothing;
  state.textContent = failed ? state.dataset.textFailed : nothing;
}
async function bring(part, words, signal, most = CARDS) {
  const query = new URLSearchParams({ search: words, part, most });
  const answer = await fetch(`/find?${query}`, { signal });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (signal.aborted || !answer.ok) return;
  const links = all("[data-found]", page);
  for (const link of links) {
    const item = option(...document.adoptNode(link).childNodes);
    const kind = document.createElement("small");
    kind.className = find(".push", item) ? "muted" : "muted push";
    kind.textContent = link.dataset.found;
    if (link.dataset.name) item.textContent = link.dataset.name;
    item.append(kind);
    item.dataset.href = link.getAttribute("href");
    item.dataset.found = link.dataset.name || find(".name", item)?.textContent || "";
    list.append(item);
  }
  if (marked() < 0) mark(0);
  if (part === "cards" && links.length < CARDS)
    await bring("sold_out", words, signal, CARDS - links.length);
}
if (palette) {
  const text = find("#palette-text");
  text.addEventListener("input", filter);
  text.addEventListener("keydown", event => {
    const at = marked();
    if (event.key === "ArrowDown") (mark(at + 1), event.preventDefault());
    if (event.key === "ArrowUp") (mark(at - 1), event.preventDefault());
    if (event.key === "Enter") {
      event.preventDefault();
      // Enter waits until the pages have arrived, and then opens the best entry.
      (pages || Promise.resolve()).then(() => {
        const chosen = options()[marked()];
        if (chosen) choose(chosen);
      });
    }
  });
  list.addEventListener("click", event => {
    const item = event.target.closest("li");
    if (item) choose(item);
  });
  // The search field in the header opens the palette. Without scripts it leads to the page /find.
  const door = document.getElementById("find");
  door?.addEventListener("click", () => openPalette());
  door?.addEventListener("input", () => {
    const words = door.value;
    door.value = "";
    openPalette(words);
  });
}

document.addEventListener("click", event => {
  const button = event.target.closest("[data-dialog]");
  if (!button) return;
  event.preventDefault();
  open(button.dataset.dialog);
});

let waiting = "";
const typing = element =>
  element.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
document.addEventListener("keydown", event => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && typing(event.target)) {
    // By default, Escape would empty a search field and keep its dialog open. The blur is needed
    // because a closed dialog's field would keep the focus until the next frame.
    event.preventDefault();
    const dialog = event.target.closest("dialog[open]");
    event.target.blur();
    dialog?.close();
    return;
  }
  const key = event.key;
  // The key that opens the search is not part of its text.
  if (key === "/" && event.target.matches?.("[data-search]") && !event.target.value)
    event.preventDefault();
  if (typing(event.target) || find("dialog[open], :popover-open")) return;
  if (waiting === "g") {
    waiting = "";
    const link = find(`nav a[data-key="${CSS.escape(key)}"]`);
    if (link) {
      event.preventDefault();
      location.href = link.href;
    }
    return;
  }
  if (key === "g") {
    waiting = "g";
    setTimeout(() => (waiting = ""), 1500);
  } else if (key === "/") {
    const search = find("main [data-search]") || find("main input[type=search]");
    event.preventDefault();
    if (search) {
      search.focus();
      search.select();
    } else openPalette();
  } else if (key === "?") open("help");
  else if (key === "j") go(1);
  else if (key === "k") go(-1);
  else if (key === "x") select();
  else if ("ads".includes(key)) decide(key);
  else if (key === ".") {
    event.preventDefault();
    const menu = currentRow() && find("button[popovertarget]", find("td.more", currentRow()) || currentRow());
    if (menu) menu.click();
    else openPalette();
  } else if (key === "Escape" && history.length > 1) history.back();
});

// Scrolls each row of tabs to its current tab. scrollIntoView would scroll the page, too.
function showTabs() {
  for (const tabs of all(".tabs:has([aria-current])")) {
    const [row, tab] = [tabs, find("[aria-current]", tabs)].map(one => one.getBoundingClientRect());
    tabs.scrollLeft += tab.left - row.left - (row.width - tab.width) / 2;
  }
}
requestAnimationFrame(showTabs);
// A decided row is removed before the page that follows arrives, which may have a row in its place.
document.addEventListener("cardsync:rows-done", () => {
  if (stays >= 0 && stays < rows().length && !currentRow()) moveTo(stays);
});
document.addEventListener("htmx:after:swap", () => {
  if (stays >= 0 && !currentRow()) moveTo(stays);
  requestAnimationFrame(showTabs);
});
// Updates the state of the sync in the header of a page that stays open.
const STATE_MS = 60_000;
let renewed = Date.now();
async function renewState() {
  const state = find(".head [data-renewed]");
  if (!state || document.hidden || Date.now() - renewed < STATE_MS) return;
  renewed = Date.now();
  const answer = await fetch(state.dataset.renewed);
  if (!answer.ok || answer.redirected) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = find("[data-renewed]", page);
  if (fresh && fresh.outerHTML !== state.outerHTML && state !== document.activeElement)
    state.replaceWith(document.adoptNode(fresh));
}
const renew = () => renewState().catch(() => {});
setInterval(renew, STATE_MS);
document.addEventListener("visibilitychange", renew);
