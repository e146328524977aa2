// Ticks of rows in the tables of cards and of proposals: a box ticks a whole page, and a bar shows
// the total worth of the ticked rows. Without this script each row is ticked separately.
const find = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const MONEY = { style: "currency", currency: "USD" };
const ticks = form => all("tbody input[type=checkbox]", form);
// Rows that were ticked and then scrolled away stay ticked in a hidden part; the box for a whole
// page does not change them.
const shownTicks = form => all("tbody:not([data-kept]) input[type=checkbox]", form);

// With scripts, a form sends only the rows' boxes, so that a member can exclude a row of a ticked
// page.
function prepare() {
  for (const whole of all("[data-tick-all]")) {
    whole.removeAttribute("name");
    whole.hidden = false;
  }
  all("form.rows").forEach(sum);
}

// Returns a row's worth: the worth of a proposal, or a card's price times its stock.
function amount(row) {
  if (row.dataset.worth) return Number(row.dataset.worth);
  const [price, stock] = ["price", "stock"].map(name => find(`.${name}`, row)?.dataset.value);
  return price && stock ? Number(price) * Number(stock) : 0;
}

function sum(form) {
  const said = find("[data-selected]", form);
  const whole = find("[data-tick-all]", form);
  const ticked = ticks(form).filter(box => box.checked);
  form.classList.toggle("ticks", ticked.length > 0);
  if (!said || !whole) return;
  const shown = shownTicks(form);
  whole.checked = shown.length > 0 && shown.every(box => box.checked);
  whole.indeterminate = ticked.length > 0 && !whole.checked;
  const worth = ticked.reduce((total, box) => total + amount(box.closest("tr")), 0);
  said.dataset.count = ticked.length.toLocaleString();
  // Some selections show no sum.
  const sumOf = find("[data-worth]", said);
  if (sumOf) sumOf.textContent = worth ? ` · ${worth.toLocaleString(undefined, MONEY)}` : "";
}

document.addEventListener("change", event => {
  const form = event.target.closest?.("form.rows");
  if (!form || event.target.type !== "checkbox") return;
  if (event.target.matches("[data-tick-all]"))
    for (const box of shownTicks(form)) box.checked = event.target.checked;
  sum(form);
});
// A click with Shift ticks all rows between the last clicked one and this one.
let last = null;
document.addEventListener("click", event => {
  const box = event.target.closest?.("form.rows tbody input[type=checkbox]");
  if (!box) return;
  const boxes = ticks(box.form);
  if (event.shiftKey && boxes.includes(last)) {
    const [from, to] = [boxes.indexOf(last), boxes.indexOf(box)].sort((a, b) => a - b);
    for (const one of boxes.slice(from, to + 1)) one.checked = box.checked;
    sum(box.form);
  }
  last = box;
});
document.addEventListener("reset", () => setTimeout(prepare));
for (const name of ["htmx:after:swap", "cardsync:rows"]) document.addEventListener(name, prepare);
prepare();
