"use strict";
const timeline = document.getElementById("timeline");
const rows = [...timeline.querySelectorAll("li")];
const found = document.getElementById("found");
let texts = null;
for (const button of document.querySelectorAll("button[data-kind]"))
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") === "true";
    button.setAttribute("aria-pressed", String(!shown));
    timeline.classList.toggle("no-" + button.dataset.kind, shown);
  });
document.getElementById("search").addEventListener("input", event => {
  texts ??= rows.map(row => row.textContent.toLowerCase());
  const wanted = event.target.value.toLowerCase().trim();
  let count = 0;
  rows.forEach((row, number) => {
    const fits = !wanted || texts[number].includes(wanted);
    row.hidden = !fits;
    count += fits;
  });
  found.textContent = wanted ? `${count} of ${rows.length}` : "";
});
addEventListener("beforeprint", () => {
  for (const each of document.querySelectorAll("details")) each.open = true;
});
