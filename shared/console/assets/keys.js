// Keys: j and k move, Enter opens, a and r go to the form of a decision. No key decides by itself.
const typing = (target) => target.closest("input, textarea, select, [contenteditable]");
const rows = () => [...document.querySelectorAll("#inbox .run, #earlier .run")];
let chosen;

const choose = (row) => {
  if (!row) return;
  chosen?.removeAttribute("data-chosen");
  chosen = row;
  row.setAttribute("data-chosen", "");
  row.querySelector("a")?.focus();
};

const step = (by) => {
  const all = rows();
  const at = all.indexOf(chosen);
  choose(all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)]);
};

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) {
    if (event.key === "Escape" && typing(event.target)) event.target.blur();
    return;
  }
  const form = { a: "#approve, #step-up", r: "#reject" }[event.key];
  if (event.key === "j") step(1);
  else if (event.key === "k") step(-1);
  else if (event.key === "i") location.assign("/console");
  else if (event.key === "?") document.querySelector("main")?.focus();
  else if (event.key === "Escape") history.length > 1 && document.querySelector("article#run") && history.back();
  else if (form) {
    const found = document.querySelector(form);
    if (!found) return;
    found.scrollIntoView({ block: "center" });
    (found.matches("form") ? found.querySelector("input:not([type=hidden]), select, textarea, button") : found)?.focus();
  } else return;
  event.preventDefault();
});
