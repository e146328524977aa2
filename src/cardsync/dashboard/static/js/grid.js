// The table of cards: editing in cells, removing chips from the search, and reordering columns.
// Without this script, links and forms do the same.
const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

document.addEventListener("keydown", event => {
  if (event.target.id !== "search" || event.key !== "Backspace" || event.target.value) return;
  const last = all(".terms a").at(-1);
  if (last) location.href = last.href;
});

// One menu serves all rows: the button of a row fills it before it opens.
document.addEventListener(
  "click",
  event => {
    const button = event.target.closest?.("button[popovertarget=row-menu]");
    const menu = document.getElementById("row-menu");
    if (!button) {
      if (event.target.closest?.("#row-menu button")) menu.hidePopover();
      return;
    }
    menu.ariaLabel = button.ariaLabel;
    for (const link of all("a", menu)) link.href = `/cards/${button.value}${link.dataset.part}`;
    for (const act of all("button", menu)) {
      act.value = button.value;
      act.hidden = act.dataset.act !== button.dataset.act;
    }
    const price = find("[data-price]", menu);
    if (price) price.textContent = button.dataset.price;
  },
  true,
);

// A member edits a price or a place in its cell after a double click or the key e. Enter saves it,
// Tab saves it and edits the row's next cell, Escape discards it.
const edits = row => all("td[data-edit]", row).filter(cell => cell.checkVisibility());

function edit(cell) {
  if (!cell || find("input", cell)) return;
  const row = cell.closest("tr");
  const shown = [...cell.childNodes];
  const field = document.createElement("input");
  field.className = "in-place";
  field.inputMode = cell.dataset.name === "price" ? "decimal" : "text";
  const known = cell.dataset.typed ?? cell.dataset.value;
  field.value = known;
  field.setAttribute("aria-label", cell.dataset.title);
  cell.replaceChildren(field);
  field.select();
  const leave = () => {
    cell.replaceChildren(...shown);
    find("a", row)?.focus({ preventScroll: true });
  };
  field.addEventListener("keydown", async event => {
    event.stopPropagation();
    if (event.key === "Escape") leave();
    if (event.key !== "Enter" && event.key !== "Tab") return;
    event.preventDefault();
    const next = event.key === "Tab" && after(cell, event.shiftKey ? -1 : 1);
    let fresh = row;
    if (field.value.trim() === known) leave();
    else fresh = await save(cell, field).catch(() => refuse(field));
    if (next && fresh) edit(find(`td[data-name="${next}"]`, fresh));
  });
  field.addEventListener("blur", () => field.isConnected && !field.disabled && leave());
}

// Returns the name of the field in the next cell of the row, if there is one.
function after(cell, step) {
  const cells = edits(cell.closest("tr"));
  return cells[cells.indexOf(cell) + step]?.dataset.name;
}

// Sends the cell's form, and returns the row as the server now shows it.
async function save(cell, field) {
  const row = cell.closest("tr");
  const table = row.closest("table");
  const page = row.closest("tbody").dataset.page;
  const ids = find("a[data-peek]", row).dataset.peek;
  const query = new URLSearchParams({ ids, page });
  const more = table.dataset.more;
  const fields = {
    csrf_token: find("meta[name=csrf-token]").content,
    [cell.dataset.name]: field.value.replace("$", "").trim(),
    from: cell.dataset.value,
    seen: cell.closest("[data-seen]").dataset.seen,
    back: more + (more.includes("?") ? "&" : "?") + query,
  };
  const form = new URLSearchParams(fields);
  field.disabled = true;
  const answer = await fetch(cell.dataset.edit, { method: "POST", body: form });
  if (answer.status === 401) {
    document.dispatchEvent(new CustomEvent("cardsync:signed-out"));
    field.disabled = false;
    return null;
  }
  const found = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (find("form[data-confirms]", found)) return confirm(cell.dataset.edit, fields);
  const fresh = find("tbody tr", found);
  if (!answer.ok || !fresh) {
    const refusal = find("[data-refusal]", found);
    // The refusal shows what somebody else changed, so a second attempt counts as knowing that
    // change.
    if (refusal && answer.status === 409) row.dataset.seen = refusal.dataset.seen;
    return refuse(field, refusal?.textContent.trim());
  }
  fresh.dataset.seen = fresh.parentElement.dataset.seen;
  const box = find("input[name=card_ids]", row);
  find("input[name=card_ids]", fresh).checked = box.checked;
  for (const name of ["aria-current", "aria-rowindex"])
    if (row.hasAttribute(name)) fresh.setAttribute(name, row.getAttribute(name));
  row.replaceWith(document.adoptNode(fresh));
  find("a", fresh).focus({ preventScroll: true });
  said(find("#notices", found));
  return fresh;
}

// A large change is confirmed on its own page, which leads back to this page.
function confirm(action, fields) {
  const form = document.createElement("form");
  Object.assign(form, { method: "post", action, hidden: true });
  const back = location.pathname + location.search;
  for (const [name, value] of Object.entries({ ...fields, back })) {
    const field = document.createElement("input");
    Object.assign(field, { type: "hidden", name, value });
    form.append(field);
  }
  find("#main").append(form);
  form.requestSubmit();
}

// Shows why the value was refused; the field stays open.
function refuse(field, reason) {
  const table = field.closest("table");
  field.disabled = false;
  field.setAttribute("aria-invalid", "true");
  field.focus();
  const detail = { said: reason || table.dataset.textUnsaved };
  document.dispatchEvent(new CustomEvent("cardsync:notice", { detail }));
}

// Shows the toast of the answer; its undo leads back to this page.
function said(notices) {
  const back = find("[name=back]", notices);
  if (back) back.value = location.pathname + location.search;
  document.getElementById("notices").replaceChildren(...document.adoptNode(notices).childNodes);
  document.dispatchEvent(new CustomEvent("cardsync:toast"));
}

document.addEventListener("dblclick", event => edit(event.target.closest?.("td[data-edit]")));
document.addEventListener("keydown", event => {
  if (event.key !== "e" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest?.("input:not([type=checkbox]), textarea, select")) return;
  const row = !find("dialog[open]") && find('tr[aria-current="true"]');
  if (row && edits(row).length) {
    event.preventDefault();
    edit(edits(row)[0]);
  }
});

// Columns can be dragged; the form sends them in their new order.
let dragged = null;
const choices = () => all("#columns label");
function draggable() {
  for (const one of choices()) one.draggable = true;
}
document.addEventListener("dragstart", event => {
  dragged = event.target.closest?.("#columns label");
});
document.addEventListener("dragover", event => {
  const over = event.target.closest?.("#columns label");
  if (!dragged || !over || over === dragged) return;
  event.preventDefault();
  const box = over.getBoundingClientRect();
  over[event.clientY < box.top + box.height / 2 ? "before" : "after"](dragged);
});
document.addEventListener("dragend", () => (dragged = null));
document.addEventListener("htmx:after:swap", draggable);
draggable();
