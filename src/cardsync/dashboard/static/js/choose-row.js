// The keys 0 to 9 press the button with that number, so that a member can choose a row without a
// mouse.
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  if (event.target.closest?.("input, select, textarea, [contenteditable]")) return;
  const button = document.querySelector(`[data-choices] [data-choice="${CSS.escape(event.key)}"]`);
  if (!button) return;
  event.preventDefault();
  button.click();
});
