// Updates the total of a customer's offer while the customer ticks cards. Amounts are integers in
// ten-thousandths of a dollar. Without this script the page shows the total of all cards.
const form = document.querySelector("form.answer");
const money = new Intl.NumberFormat(document.documentElement.lang, {
  style: "currency",
  currency: "USD",
});
const units = (text) => Math.round(Number(text) * 10000);

function count() {
  const sums = { copies: 0, cash: 0, credit: 0 };
  for (const line of form.querySelectorAll("[data-copies]")) {
    if (!line.querySelector("input[name=line]").checked) continue;
    const copies = Number(line.dataset.copies);
    sums.copies += copies;
    sums.cash += copies * units(line.dataset.cash);
    sums.credit += copies * units(line.dataset.credit);
  }
  const cards = form.querySelector("[data-cards]");
  cards.textContent = `${sums.copies.toLocaleString()} ${sums.copies === 1 ? "card" : "cards"}`;
  for (const total of form.querySelectorAll("[data-total]")) {
    total.textContent = money.format(sums[total.dataset.total] / 10000);
  }
  form.querySelector("button[value=yes]").disabled = !sums.copies;
}

// A long offer has several pages, and its total includes all of them, so this page must not change
// the total.
if (form && !form.querySelector("a.chip")) form.addEventListener("change", count);
