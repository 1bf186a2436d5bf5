// The text of a configuration: a mistake leads to its place, and what was typed survives a sign-out in this tab.
const field = document.getElementById("text");
if (field) {
  const go = (line, column) => {
    const before = field.value.split("\n").slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    const at = Math.min(before + column - 1, field.value.length);
    field.focus();
    field.setSelectionRange(at, Math.min(at + 1, field.value.length));
    field.scrollTop = (line - 4) * parseFloat(getComputedStyle(field).lineHeight);
  };
  for (const link of document.querySelectorAll("a[data-line]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      go(Number(link.dataset.line), Number(link.dataset.column));
    });
  }
  const key = "quartermaster.config";
  const kept = JSON.parse(sessionStorage.getItem(key) ?? "null");
  if (kept && kept.etag === field.dataset.etag && field.value === field.defaultValue && kept.text !== field.value && !document.getElementById("checked")) {
    field.value = kept.text;
    const told = document.createElement("p");
    told.className = "hint";
    told.setAttribute("role", "status");
    const drop = document.createElement("button");
    drop.type = "button";
    drop.className = "quiet";
    drop.textContent = "Show what is in force";
    drop.addEventListener("click", () => { field.value = field.defaultValue; sessionStorage.removeItem(key); told.remove(); });
    told.append("This is what you typed before and did not save. ", drop);
    field.before(told);
  }
  field.addEventListener("input", () => sessionStorage.setItem(key, JSON.stringify({ etag: field.dataset.etag, text: field.value })));
  for (const form of document.querySelectorAll("form[action$='/sign-out']")) form.addEventListener("submit", () => sessionStorage.removeItem(key));
}
