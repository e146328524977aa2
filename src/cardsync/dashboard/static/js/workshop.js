// Marks the parts of a rule's sentence that differ from the stored rule during editing.
const form = document.getElementById("rule");
const valueOf = field => (field.type === "checkbox" ? (field.checked ? "true" : "") : field.value);

form?.addEventListener("input", ({ target }) => {
  if ("stored" in target.dataset)
    target.classList.toggle("differs", valueOf(target).trim() !== target.dataset.stored);
});
