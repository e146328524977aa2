// Before the first paint: the theme and the density that the reader chose on this device.
for (const name of ["theme", "density"]) {
  const chosen = localStorage.getItem(name);
  if (chosen) document.documentElement.dataset[name] = chosen;
}
// Settings → Appearance: radio buttons that show the choice and change it at once.
addEventListener("DOMContentLoaded", () => {
  for (const radio of document.querySelectorAll("input[data-appearance]")) {
    radio.checked = (localStorage.getItem(radio.name) || "") === radio.value;
    radio.addEventListener("change", () => {
      if (radio.value) localStorage.setItem(radio.name, radio.value);
      else localStorage.removeItem(radio.name);
      if (radio.value) document.documentElement.dataset[radio.name] = radio.value;
      else delete document.documentElement.dataset[radio.name];
    });
  }
});
