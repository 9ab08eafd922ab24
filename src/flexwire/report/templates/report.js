"use strict";
(() => {
  // On a narrow screen each row is a card (report.css): cells then say their column, and, as they are
  // no longer laid out as a table, what they are.
  for (const table of document.querySelectorAll(".scroll table")) {
    const heads = [...table.tHead.rows[0].cells];
    table.classList.add("cards");
    table.setAttribute("role", "table");
    for (const group of [table.tHead, ...table.tBodies]) group.setAttribute("role", "rowgroup");
    for (const row of table.rows) {
      row.setAttribute("role", "row");
      [...row.cells].forEach((cell, column) => {
        const inHead = row.parentNode === table.tHead;
        const role = inHead ? "columnheader" : column === 0 ? "rowheader" : "cell";
        cell.setAttribute("role", role);
        if (!inHead && column > 0) cell.dataset.label = heads[column].textContent.trim();
      });
    }
  }
  // Where there is no mouse to point with, a tap says what pointing says.
  const told = document.createElement("p");
  told.className = "told";
  told.setAttribute("role", "status");
  document.body.append(told);
  document.addEventListener("click", (event) => {
    const one = event.target.closest("[title]");
    const touched = matchMedia("(hover: none)").matches;
    told.textContent = touched && one ? one.title : "";
  });
  const key = (row, column) => {
    const cell = row.cells[column];
    return cell.dataset.sort === undefined ? cell.textContent.trim() : Number(cell.dataset.sort);
  };
  const compare = (a, b) =>
    typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  for (const table of document.querySelectorAll("table.sortable")) {
    const heads = [...table.tHead.rows[0].cells];
    const body = table.tBodies[0];
    if (body.rows.length < 2) continue;
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const first = head.classList.contains("number") ? "descending" : "ascending";
        const second = first === "ascending" ? "descending" : "ascending";
        const order = head.getAttribute("aria-sort") === first ? second : first;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", order);
        const sign = order === "ascending" ? 1 : -1;
        const rows = [...body.rows].map((row) => [key(row, column), row]);
        rows.sort((a, b) => sign * compare(a[0], b[0]));
        body.append(...rows.map((pair) => pair[1]));
      });
    });
  }
})();
