// Keeps typed values: leaving a changed form shows a warning. When the session has ended, the page
// keeps the fields, and fills them again after the sign-in.
const find = (selector, root = document) => root.querySelector(selector);
const KEPT = "typed";
const changed = new Set();

// Returns the form of a field if leaving it would lose a value. A search, a ticked row and a menu
// lose nothing.
function savedBy(field) {
  const form = field.form;
  if (!form || !field.name || form.method !== "post") return null;
  const passing = "[type=search], [type=checkbox][name=card_ids], [data-rows] [type=checkbox]";
  if (field.matches(passing) || field.closest("[popover], dialog, [role=search]")) return null;
  return form;
}
document.addEventListener("input", event => {
  const form = savedBy(event.target);
  if (form) changed.add(form);
});
document.addEventListener("submit", event => changed.delete(event.target));
document.addEventListener("reset", event => changed.delete(event.target));
document.addEventListener("cardsync:refused", event => changed.add(event.target));
addEventListener("beforeunload", event => {
  if ([...changed].some(form => form.isConnected)) event.preventDefault();
});

const notice = detail =>
  document.dispatchEvent(new CustomEvent("cardsync:notice", { detail }));

function signedOut() {
  const texts = find("#notices").dataset;
  const link = document.createElement("a");
  link.className = "button";
  link.href = `/sign-in?${new URLSearchParams({ next: location.pathname + location.search })}`;
  link.textContent = texts.textSignIn;
  link.addEventListener("click", keep);
  notice({ said: texts.textSignedOut, more: [link] });
}
document.addEventListener("cardsync:signed-out", signedOut);
// The answer to a script's request after the end of the session is a sign-in page, which must not
// become part of this page.
document.addEventListener("htmx:before:response", event => {
  const raw = event.detail?.ctx?.response?.raw;
  if (raw?.status !== 401 && new URL(raw?.url || location).pathname !== "/sign-in") return;
  event.preventDefault();
  signedOut();
});

const fieldsOf = form =>
  [...form.elements].filter(
    one => one.name && one.name !== "csrf_token" && !["file", "password", "hidden"].includes(one.type),
  );
const formAt = place => [...document.forms].filter(one => one.method === "post")[place];

function keep() {
  const forms = [...document.forms].filter(one => one.method === "post");
  const kept = forms.flatMap((form, place) =>
    changed.has(form)
      ? [{ place, action: form.getAttribute("action"), fields: fieldsOf(form).map(stateOf) }]
      : [],
  );
  changed.clear();
  const page = location.pathname + location.search;
  if (kept.length) sessionStorage.setItem(KEPT, JSON.stringify({ page, kept }));
}
const isTicked = field => ["checkbox", "radio"].includes(field.type);
const stateOf = field => [field.name, isTicked(field) ? field.checked : field.value];

function giveBack() {
  const stored = JSON.parse(sessionStorage.getItem(KEPT) || "null");
  if (!stored || stored.page !== location.pathname + location.search) return;
  sessionStorage.removeItem(KEPT);
  for (const { place, action, fields } of stored.kept) {
    const form = formAt(place);
    if (form?.getAttribute("action") !== action) continue;
    fieldsOf(form).forEach((field, at) => {
      const [name, value] = fields[at] || [];
      if (name === field.name) field[isTicked(field) ? "checked" : "value"] = value;
    });
    changed.add(form);
    find("input:not([type=hidden]), textarea, select", form)?.dispatchEvent(
      new Event("input", { bubbles: true }),
    );
  }
  notice({ said: find("#notices").dataset.textRestored });
}
giveBack();

// A search without a network leaves the old rows, so a notice says that they may be out of date.
document.addEventListener("htmx:error", () => {
  if (!navigator.onLine) notice({ said: find("#notices").dataset.textOfflineRead });
});
