// Before the first paint: the theme and the density that the reader chose on this device.
for (const name of ["theme", "density"]) {
  const chosen = localStorage.getItem(name);
  if (chosen) document.documentElement.dataset[name] = chosen;
}
