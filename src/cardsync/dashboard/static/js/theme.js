// Sets the theme and the density that the member chose on this device, before the page is first
// painted.
for (const name of ["theme", "density"]) {
  const chosen = localStorage.getItem(name);
  if (chosen) document.documentElement.dataset[name] = chosen;
}
// A table in its own scroll area shows its rows only at their place if the page returns to it, and
// else lays out the rows in sight first (css/cards-table.css). js/scroll.js ends both.
document.documentElement.dataset.table = history.state?.top ? "return" : "begin";
// Radio buttons in the header and in the settings show the choice and change it immediately.
addEventListener("load", () => {
  const radios = [...document.querySelectorAll("input[data-appearance]")];
  const show = () => {
    for (const radio of radios)
      radio.checked = (localStorage.getItem(radio.name) || "") === radio.value;
  };
  show();
  // If that script could not be loaded, all rows are shown.
  setTimeout(() => delete document.documentElement.dataset.table, 2_000);
  for (const radio of radios) {
    radio.addEventListener("change", () => {
      if (radio.value) localStorage.setItem(radio.name, radio.value);
      else localStorage.removeItem(radio.name);
      if (radio.value) document.documentElement.dataset[radio.name] = radio.value;
      else delete document.documentElement.dataset[radio.name];
      show();
    });
  }
});
