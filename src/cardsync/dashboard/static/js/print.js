// The print button of a page for printing opens the browser's print dialog.
document.addEventListener("click", event => {
  if (event.target.closest?.("[data-action=print]")) print();
});
