// On a narrow screen each row of a table is a card (site.css): its cells then say their column, and,
// as they are no longer laid out as a table, what they are.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("article table.docutils")) {
    const head = table.tHead?.rows[0];
    if (!head) continue;
    table.classList.add("cards");
    table.setAttribute("role", "table");
    for (const group of [table.tHead, ...table.tBodies]) group.setAttribute("role", "rowgroup");
    for (const row of table.rows) {
      row.setAttribute("role", "row");
      [...row.cells].forEach((cell, column) => {
        const inHead = row.parentNode === table.tHead;
        cell.setAttribute("role", inHead ? "columnheader" : "cell");
        const label = head.cells[column]?.textContent.trim();
        if (!inHead && column > 0 && label) cell.dataset.label = label;
        cell.classList.toggle("without", !cell.textContent.trim());
        if (!inHead) breakable(cell);
      });
    }
  }
});

// A long name may break behind the marks within it, and nowhere else.
function breakable(cell) {
  const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) texts.push(walker.currentNode);
  for (const text of texts) {
    const pieces = text.data.split(/(?<=[_./,<>:](?=[A-Za-z]))/);
    if (pieces.length === 1) continue;
    const parts = pieces.flatMap((piece, at) => (at ? [document.createElement("wbr"), piece] : [piece]));
    text.replaceWith(...parts);
  }
}
