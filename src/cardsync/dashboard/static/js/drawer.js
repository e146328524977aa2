// Shows one row of a table in the drawer beside the table. Without this script a row's name links
// to its page.
const find = (selector, root = document) => root.querySelector(selector);
const shown = () => find("#peek:not([hidden])");

// Marks the row that is open in the drawer.
function prepare() {
  const open = shown()?.dataset.of;
  for (const link of document.querySelectorAll("a[data-peek]"))
    link.closest("tr").classList.toggle("open", link.dataset.peek === open);
  // The drawer's link to the card's page gets the address that names the card's position in the
  // list.
  const link = open && find(`a[data-peek="${open}"]`);
  const page = shown() && find("[data-page-of]", shown());
  if (link && page) page.href = link.href;
}
for (const name of ["htmx:after:swap", "cardsync:rows"]) document.addEventListener(name, prepare);
prepare();

// A click on a name opens its row in the drawer. A second click opens the page, and a click with a
// modifier key opens a new tab.
document.addEventListener("click", event => {
  const link = event.target.closest?.("a[data-peek]");
  if (!link || !window.htmx || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (shown()?.dataset.of === link.dataset.peek) return;
  event.preventDefault();
  const { at, peeks } = link.closest("table").dataset;
  const address = new URL(at, location);
  const page = link.closest("[data-page]")?.dataset.page;
  if (page > 1) address.searchParams.set("page", page);
  address.searchParams.set(peeks, link.dataset.peek);
  const [path, query] = [address.pathname, address.search];
  const show = { source: link, target: "#peek", swap: "outerHTML", push: path + query };
  htmx.ajax("GET", `${path}/peek${query}`, show);
});

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
