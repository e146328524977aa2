// Sets the theme and the density that the member chose on this device, before the page is first
// painted.
for (const name of ["theme", "density"]) {
  const chosen = localStorage.getItem(name);
  if (chosen) document.documentElement.dataset[name] = chosen;
}
// Radio buttons in the header and in the settings show the choice and change it immediately.
addEventListener("load", () => {
  const radios = [...document.querySelectorAll("input[data-appearance]")];
  const show = () => {
    for (const radio of radios)
      radio.checked = (localStorage.getItem(radio.name) || "") === radio.value;
  };
  show();
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
