// Filters: empty fields stay out of the address, and a choice from a list is taken at once.
const form = document.getElementById("filters");
if (form) {
  const go = () => {
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form)) if (value) query.append(name, value);
    const text = query.toString();
    location.assign(form.getAttribute("action") + (text ? `?${text}` : ""));
  };
  form.addEventListener("submit", (event) => { event.preventDefault(); go(); });
  for (const select of form.querySelectorAll("select")) select.addEventListener("change", go);
}
