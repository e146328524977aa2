// One row of a table, open beside it. Without this file its name leads to its page.
const find = (selector, root = document) => root.querySelector(selector);
const shown = () => find("#peek:not([hidden])");

// The row that is open is marked.
function prepare() {
  const open = shown()?.dataset.of;
  for (const link of document.querySelectorAll("a[data-peek]"))
    link.closest("tr").classList.toggle("open", link.dataset.peek === open);
  // Its page knows the place in the list.
  const link = open && find(`a[data-peek="${open}"]`);
  const page = shown() && find("[data-page-of]", shown());
  if (link && page) page.href = link.href;
}
for (const name of ["htmx:after:swap", "cardsync:rows"]) document.addEventListener(name, prepare);
prepare();

// A name opens the row beside the table, and once more its page; so does a key for a new tab.
document.addEventListener(
  "click",
  event => {
    const link = event.target.closest?.("a[data-peek]");
    if (!link) return;
    const again = shown()?.dataset.of === link.dataset.peek;
    if (again || event.ctrlKey || event.metaKey || event.shiftKey) event.stopImmediatePropagation();
  },
  true,
);

function close() {
  const drawer = shown();
  if (!drawer) return false;
  const link = find(`a[data-peek="${drawer.dataset.of}"]`);
  history.pushState(null, "", find("[data-close]", drawer).href);
  drawer.hidden = true;
  prepare();
  link?.focus({ preventScroll: true });
  return true;
}
document.addEventListener("click", event => {
  if (event.target.closest?.("#peek [data-close]") && close()) event.preventDefault();
});
document.addEventListener(
  "keydown",
  event => {
    if (event.key !== "Escape" || event.target.matches?.("#search, .in-place")) return;
    if (!find("dialog[open], :popover-open") && close()) event.stopImmediatePropagation();
  },
  true,
);
