// Completes a search during typing: an ARIA combobox for the field, operated with the arrow keys,
// Enter, Tab and Escape. Without this script the field is a plain search.
const MOST_WAIT = 120;

function completing(field) {
  const list = document.createElement("ul");
  list.id = `${field.id}-completions`;
  list.className = "completions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", field.labels[0]?.textContent ?? "");
  list.hidden = true;
  field.after(list);
  field.parentElement.classList.add("completing");
  for (const [name, value] of [
    ["role", "combobox"],
    ["aria-autocomplete", "list"],
    ["aria-expanded", "false"],
    ["aria-controls", list.id],
  ])
    field.setAttribute(name, value);
  let found = [],
    at = -1,
    timer = 0,
    asked = 0;

  function close() {
    clearTimeout(timer);
    asked += 1;
    list.hidden = true;
    at = -1;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  }
  function mark(index) {
    at = (index + found.length) % found.length;
    [...list.children].forEach((item, place) =>
      item.setAttribute("aria-selected", String(place === at)),
    );
    field.setAttribute("aria-activedescendant", list.children[at].id);
    list.children[at].scrollIntoView({ block: "nearest" });
  }
  function show() {
    list.replaceChildren(
      ...found.map((one, index) => {
        const item = document.createElement("li");
        item.id = `${list.id}-${index}`;
        item.setAttribute("role", "option");
        item.setAttribute("aria-selected", "false");
        const text = document.createElement("bdi");
        text.textContent = one.text;
        item.append(text);
        if (one.told) {
          const told = document.createElement("small");
          told.textContent = one.told;
          item.append(" ", told);
        }
        return item;
      }),
    );
    at = -1;
    list.hidden = found.length === 0;
    field.setAttribute("aria-expanded", String(!list.hidden));
    field.removeAttribute("aria-activedescendant");
  }
  async function ask() {
    const mine = ++asked;
    const text = field.value.slice(0, field.selectionStart);
    if (!text.trim() || /\s$/.test(text)) return close();
    try {
      const answer = await fetch(`/api/cards/complete?${new URLSearchParams({ text })}`, {
        headers: { Accept: "application/json" },
      });
      if (!answer.ok || mine !== asked) return;
      const { completions } = await answer.json();
      if (mine !== asked || document.activeElement !== field) return;
      // The API's offsets count characters, but a script counts UTF-16 units.
      found = completions
        .map(one => ({ ...one, from: [...text].slice(0, one.at).join("").length, to: text.length }))
        .filter(one => text.slice(one.from) !== one.text);
      show();
    } catch {
      close();
    }
  }
  function take(one) {
    const rest = field.value.slice(one.to);
    const term = one.text.endsWith(":") || rest.startsWith(" ") ? one.text : `${one.text} `;
    field.value = field.value.slice(0, one.from) + term + rest;
    field.setSelectionRange(one.from + term.length, one.from + term.length);
    close();
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, MOST_WAIT);
  });
  field.addEventListener("keydown", event => {
    if (event.key === "ArrowDown" && event.altKey) {
      event.preventDefault();
      ask();
      return;
    }
    if (list.hidden) return;
    if (event.key === "ArrowDown") {
      event.preventDefault();
      mark(at + 1);
    } else if (event.key === "ArrowUp") {
      event.preventDefault();
      mark(at < 0 ? found.length - 1 : at - 1);
    } else if ((event.key === "Enter" || event.key === "Tab") && at >= 0) {
      event.preventDefault();
      take(found[at]);
    } else if (event.key === "Enter") close();
    else if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      close();
    }
  });
  field.addEventListener("blur", close);
  list.addEventListener("mousedown", event => event.preventDefault());
  list.addEventListener("click", event => {
    const item = event.target.closest("li");
    if (item) take(found[[...list.children].indexOf(item)]);
  });
}

document.querySelectorAll("[data-search]").forEach(completing);
