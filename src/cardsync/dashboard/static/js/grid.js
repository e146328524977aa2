// The table of cards: cells edited in place, the chips of the search, and the order of the columns.
// Without it links and forms do the same.
const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

document.addEventListener("keydown", event => {
  if (event.target.id !== "search" || event.key !== "Backspace" || event.target.value) return;
  const last = all(".terms a").at(-1);
  if (last) location.href = last.href;
});

// A price or a place is edited in its cell: by e or a double click; Enter saves it, Tab saves it and
// edits the next cell of the row, Escape leaves it.
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

// The name of the field beside a cell, if there is one.
function after(cell, step) {
  const cells = edits(cell.closest("tr"));
  return cells[cells.indexOf(cell) + step]?.dataset.name;
}

// Send the cell as its form, and return the row as the server has it now.
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
    // Who has read what somebody else did meanwhile may save once more.
    if (refusal && answer.status === 409) row.dataset.seen = refusal.dataset.seen;
    return refuse(field, refusal?.textContent.trim());
  }
  fresh.dataset.seen = fresh.parentElement.dataset.seen;
  const box = find("input[name=card_ids]", row);
  find("input[name=card_ids]", fresh).checked = box.checked;
  for (const name of ["aria-current", "aria-rowindex"])
    if (row.hasAttribute(name)) fresh.setAttribute(name, row.getAttribute(name));
  row.replaceWith(document.adoptNode(fresh));
  window.htmx?.process(fresh);
  find("a", fresh).focus({ preventScroll: true });
  said(find("#notices", found));
  return fresh;
}

// A large change is confirmed on a page of its own, which leads back to this one.
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

// The field stays, with the reason.
function refuse(field, reason) {
  const table = field.closest("table");
  field.disabled = false;
  field.setAttribute("aria-invalid", "true");
  field.focus();
  const detail = { said: reason || table.dataset.textUnsaved };
  document.dispatchEvent(new CustomEvent("cardsync:notice", { detail }));
}

// The toast says what was done; its undo leads back to this place.
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

// Columns are dragged to their place; the form sends them in that order.
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
