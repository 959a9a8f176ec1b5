"use strict";
/* The page is readable without this script. It lets a header's button sort its table and words filter its rows,
   opens the details that a link leads to, and for printing those whose content is nowhere else on the page. */
function key(row, column) {
  const cell = row.cells[column], value = cell.dataset.value, text = value ?? cell.textContent.trim();
  const number = value === undefined ? parseFloat(text) : value === "" ? NaN : Number(value);
  return Number.isNaN(number) ? text : number;
}
function compare(a, b) {
  return typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
}
function sort(button) {
  const header = button.closest("th"), table = header.closest("table"), column = header.cellIndex;
  const up = header.getAttribute("aria-sort") !== "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", up ? "ascending" : "descending");
  const rows = Array.from(table.tBodies[0].rows, row => [key(row, column), row]);
  /* What is empty comes last, either way. */
  rows.sort(([a], [b]) => (a === "") - (b === "") || (up ? compare(a, b) : compare(b, a)));
  table.tBodies[0].append(...rows.map(([, row]) => row));
}
for (const header of document.querySelectorAll("table.sortable thead th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...header.childNodes);
  header.append(button);
  button.addEventListener("click", () => sort(button));
}
for (const table of document.querySelectorAll("table.filtered")) {
  const label = document.createElement("label"), input = document.createElement("input");
  const count = document.createElement("output"), rows = Array.from(table.tBodies[0].rows);
  input.type = "search";
  label.append("Filter: ", input);
  table.parentElement.before(label, " ", count);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    for (const row of rows) row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
    count.textContent = `${rows.filter(row => !row.hidden).length} of ${rows.length}`;
  });
}
function reveal() {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  if (target) target.scrollIntoView();
}
addEventListener("hashchange", reveal);
let opened = [];
addEventListener("beforeprint", () => {
  opened = Array.from(document.querySelectorAll("details.paper:not([open])"));
  for (const part of opened) part.open = true;
});
addEventListener("afterprint", () => {
  for (const part of opened) part.open = false;
});
reveal();
