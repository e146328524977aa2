// The keys and small habits of every page. Nothing here is needed for a page to work.
const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

// Buttons that only scripts can serve are shown only with scripts.
for (const button of all("[data-action]")) button.hidden = false;

// Requests of htmx carry the form token of this session.
document.addEventListener("htmx:config:request", event => {
  const headers = event.detail?.ctx?.request?.headers;
  if (headers) headers["X-CSRF-Token"] = find("meta[name=csrf-token]").content;
});

function toggleTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", root.dataset.theme);
}

// Dialogs: focus returns to the button that opened them; browsers do that for showModal().
function open(id) {
  const dialog = document.getElementById(id);
  if (dialog && !dialog.open) dialog.showModal();
}

// Rows: j and k move, x selects, Enter opens the row's first link. In a queue, a accepts the row, d
// dismisses it and s snoozes it.
const rows = () => all("[data-rows] > tr, [data-rows] > li");
let current = -1;
function go(step) {
  const list = rows();
  if (!list.length) return;
  current = Math.max(0, Math.min(list.length - 1, current + step));
  list.forEach(
    (row, index) =>
      row.toggleAttribute("aria-current", false) ||
      (index === current && row.setAttribute("aria-current", "true")),
  );
  const link = find("a, button", list[current]);
  link?.focus({ preventScroll: true });
  list[current].scrollIntoView({ block: "nearest" });
}

function select() {
  const box = rows()[current] && find("input[type=checkbox]", rows()[current]);
  if (box) box.click();
}

function decide(key) {
  const row = rows()[current];
  const button = row && find(`[data-row-key="${CSS.escape(key)}"] button`, row);
  button?.click();
}

// The palette: pages, and the actions that this page shows.
const palette = document.getElementById("palette");
const list = document.getElementById("palette-list");
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
function choose(item) {
  palette.close();
  if (item.dataset.href) location.href = item.dataset.href;
  else item.does?.click();
}
function openPalette() {
  all("li[data-own]", list).forEach(item => item.remove());
  for (const action of all(".actions a, .actions button, [data-command]")) {
    const item = document.createElement("li");
    item.setAttribute("role", "option");
    item.dataset.own = "";
    item.textContent = action.dataset.command || action.textContent.trim();
    item.does = action;
    list.append(item);
  }
  const text = find("#palette-text");
  text.value = "";
  all("li", list).forEach(item => (item.hidden = false));
  open("palette");
  text.focus();
  mark(0);
}
if (palette) {
  const text = find("#palette-text");
  text.addEventListener("input", () => {
    const wanted = text.value.toLowerCase();
    all("li", list).forEach(
      item => (item.hidden = !item.textContent.toLowerCase().includes(wanted)),
    );
    mark(0);
  });
  text.addEventListener("keydown", event => {
    const at = options().findIndex(item => item.getAttribute("aria-selected") === "true");
    if (event.key === "ArrowDown") (mark(at + 1), event.preventDefault());
    if (event.key === "ArrowUp") (mark(at - 1), event.preventDefault());
    if (event.key === "Enter") {
      event.preventDefault();
      if (options()[at]) choose(options()[at]);
    }
  });
  list.addEventListener("click", event => {
    const item = event.target.closest("li");
    if (item) choose(item);
  });
}

const ACTIONS = { theme: toggleTheme, palette: openPalette };
document.addEventListener("click", event => {
  const button = event.target.closest("[data-action], [data-dialog]");
  if (!button) return;
  if (button.dataset.dialog) {
    event.preventDefault();
    open(button.dataset.dialog);
  } else ACTIONS[button.dataset.action]?.();
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
    // The default of a search field would empty it, and keep a dialog open. The field of a closed
    // dialog would have the focus until the next frame.
    event.preventDefault();
    const dialog = event.target.closest("dialog[open]");
    event.target.blur();
    dialog?.close();
    return;
  }
  if (typing(event.target) || find("dialog[open]")) return;
  const key = event.key;
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
    const search = find("[data-search]") || find("input[type=search]");
    if (search) {
      event.preventDefault();
      search.focus();
      search.select();
    }
  } else if (key === "?") open("help");
  else if (key === "j") go(1);
  else if (key === "k") go(-1);
  else if (key === "x") select();
  else if ("ads".includes(key)) decide(key);
  else if (key === ".") {
    event.preventDefault();
    openPalette();
  } else if (key === "Escape" && history.length > 1) history.back();
});

document.addEventListener("htmx:after:swap", () => {
  current = -1;
});
