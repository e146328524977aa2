// Keeps the total of a customer's offer beside its button as cards are ticked. Amounts are counted
// in hundredths of a cent; without this script the total is that of all cards.
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

// Another page of a long offer counts too, so its total stays that of the whole.
if (form && !form.querySelector("a.chip")) form.addEventListener("change", count);
