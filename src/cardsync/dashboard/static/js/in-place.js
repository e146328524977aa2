// Sends forms without a reload. The page that a form leads to replaces the changed parts of this
// page, so the scroll position and the focus stay.
const find = (selector, root = document) => root.querySelector(selector);
const TOAST_SECONDS = 10;
// A row with a mark is not sent again while it looks the same: the answer has only its empty row.
const MARKED = "#main tr[data-same]";
if (window.htmx) htmx.config.morphSkip = MARKED;
const asked = () => ({
  Accept: "text/html",
  "X-Rows-There": [...document.querySelectorAll(MARKED)].map(row => row.dataset.same).join(),
});

document.addEventListener("submit", event => {
  const form = event.target;
  const button = event.submitter;
  // A field named method or target hides the form's own property, so this reads attributes.
  const said = name => button?.getAttribute(`form${name}`) || form.getAttribute(name) || "";
  const [method, enctype] = [said("method").toLowerCase(), said("enctype")];
  const leaves = said("target") || form.matches("[data-reload], [data-hx-post]");
  if (event.defaultPrevented || method !== "post" || enctype.startsWith("multipart") || leaves) return;
  if (!window.htmx || !find("#main")) return;
  event.preventDefault();
  if (!form.getAttribute("aria-busy")) send(form, button);
  else if (form.matches(".rows") && button !== sent) after = button;
});

// The button of the last form, and the button of another row that was pressed meanwhile.
let sent = null;
let after = null;

async function send(form, button) {
  const action = button?.getAttribute("formaction") || form.getAttribute("action") || location.href;
  const body = new URLSearchParams(new FormData(form, button));
  const busy = [form, button?.closest("tr")].filter(Boolean);
  sent = button;
  for (const one of busy) one.setAttribute("aria-busy", "true");
  const options = { method: "POST", body, headers: asked() };
  // The browser may be offline and still reach a server on this computer, so the request is sent
  // anyway.
  const offline = !navigator.onLine;
  const answer = await fetch(action, options).then(follow).catch(() => null);
  for (const one of busy) one.removeAttribute("aria-busy");
  const next = after;
  after = null;
  // If the network failed during the request, the server may have received it, so the notice
  // differs.
  if (answer) {
    await show(answer, form);
    if (next?.isConnected) next.form?.requestSubmit(next);
    return;
  }
  notice(find("#notices").dataset[offline ? "textOffline" : "textLost"]);
  refused(form);
}

// The server may name the rows that are done and the page that follows. These rows are removed
// before that page arrives. They are stored, so if it does not arrive, the browser opens it.
function follow(answer) {
  const next = answer.headers.get("X-Follows");
  if (!next) return answer;
  for (const id of answer.headers.get("X-Rows-Done").split(",")) document.getElementById(id)?.remove();
  document.dispatchEvent(new CustomEvent("cardsync:rows-done"));
  return fetch(next, { headers: asked() }).catch(() => {
    location.assign(next);
    return new Promise(() => {});
  });
}

// Reports that the form's values are unsaved, so that leaving the page shows a warning.
function refused(form) {
  form.dispatchEvent(new CustomEvent("cardsync:refused", { bubbles: true }));
}

// If a refusal is about a field of the form, it is shown beside that field.
function atField(form, name, said) {
  const field = name && form.elements.namedItem(name);
  if (!field?.checkVisibility?.()) return false;
  const line = document.createElement("p");
  line.className = "hint bad";
  line.setAttribute("role", "alert");
  line.id = `${field.id || field.name}-refused`;
  line.textContent = said;
  document.getElementById(line.id)?.remove();
  field.after(line);
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-describedby", line.id);
  field.focus();
  return true;
}

async function show(answer, form) {
  const address = new URL(answer.url);
  const isPage = (answer.headers.get("content-type") || "").startsWith("text/html");
  if (!isPage) return save(answer);
  if (answer.redirected && address.pathname !== location.pathname) {
    location.assign(answer.url);
    return;
  }
  if (answer.status === 401) {
    document.dispatchEvent(new CustomEvent("cardsync:signed-out"));
    return refused(form);
  }
  const text = await answer.text();
  const page = new DOMParser().parseFromString(text, "text/html");
  if (!find("#main", page)) return leave(answer, text);
  // Any other refusal is shown above the form, which keeps the typed values.
  const refusal = !answer.ok && find("[data-refusal]", page);
  if (refusal) {
    const said = refusal.textContent.trim();
    if (answer.status === 409) await refresh();
    if (!atField(form, refusal.dataset.field, said)) notice(said);
    return refused(form);
  }
  if (answer.redirected || address.searchParams.has("done")) {
    for (const name of ["done", "undo"]) address.searchParams.delete(name);
    history.replaceState(history.state, "", address);
  }
  await replace(page, form);
  leaveInTime();
}

// A page without the frame of our pages, such as a sheet to print, replaces the whole document.
function leave(answer, text) {
  if (answer.redirected) return location.assign(answer.url);
  history.pushState(null, "", answer.url);
  document.open();
  document.write(text);
  document.close();
}

// Shows the page's current rows, because somebody else may have changed them.
async function refresh() {
  const answer = await fetch(location.href, { headers: asked() });
  if (!answer.ok || answer.redirected) return;
  await replace(new DOMParser().parseFromString(await answer.text(), "text/html"), document.body);
}

// htmx parses its text again for each target, so it gets only the text of that target.
async function replace(page, sourceElement) {
  for (const row of page.querySelectorAll(MARKED)) {
    const there = document.getElementById(row.id);
    // A row that was sent in full has changed, so it is not skipped.
    if (row.cells.length) there?.removeAttribute("data-same");
    else if (there?.dataset.same !== row.dataset.same) return location.reload();
  }
  for (const target of ["#main", "#nav"]) {
    const text = find(target, page)?.outerHTML;
    if (text) await htmx.swap({ sourceElement, target, select: target, text, swap: "outerMorph" });
  }
}

async function save(answer) {
  const named = /filename="?([^";]+)/.exec(answer.headers.get("content-disposition") || "");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = named ? named[1] : "";
  link.click();
  URL.revokeObjectURL(link.href);
}

// An error floats like a toast, so that nothing moves under the pointer. It stays until the next
// notice.
function notice(said, ...more) {
  const line = document.createElement("div");
  line.className = "toast bad";
  line.setAttribute("role", "alert");
  const words = document.createElement("p");
  words.textContent = said;
  const away = document.createElement("button");
  away.type = "button";
  away.className = "quiet";
  away.textContent = find("#notices").dataset.textClose;
  away.addEventListener("click", () => line.remove());
  line.append(words, ...more, away);
  find("#notices").replaceChildren(line);
}
document.addEventListener("cardsync:notice", event => notice(event.detail.said, ...event.detail.more || []));

// A toast disappears after some seconds, but not while the pointer or the focus is on it.
let leaving;
function leaveInTime() {
  clearTimeout(leaving);
  const toast = find("#notices .toast:not(.bad)");
  if (!toast) return;
  leaving = setTimeout(() => {
    if (toast.matches(":hover, :focus-within")) leaveInTime();
    else toast.remove();
  }, TOAST_SECONDS * 1000);
}
document.addEventListener("cardsync:toast", leaveInTime);
leaveInTime();

document.addEventListener("keydown", event => {
  const typing = event.target.closest?.("input:not([type=checkbox]), textarea, select, dialog[open]");
  if (event.key !== "z" || event.ctrlKey || event.metaKey || event.altKey || typing) return;
  find("#notices .toast form button")?.click();
});
