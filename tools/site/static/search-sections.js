// Results of a search stand by the section of the site that their page is in (sections.js), in the site's order.
document.addEventListener("DOMContentLoaded", () => {
  const results = document.getElementById("search-results");
  const sections = window.flexwireSections;
  if (!results || !sections) return;
  const root = new URL(document.documentElement.dataset.content_root, location.href).href;
  const order = [...new Set(Object.values(sections)), "Every message", "Other pages"];
  const groups = new Map();

  function sectionOf(link) {
    const page = link.href.replace(root, "").replace(/\.html.*$/, "");
    if (page.startsWith("docs/reference/")) return "Every message";
    return sections[page] ?? "Other pages";
  }

  function groupOf(title) {
    if (groups.has(title)) return groups.get(title);
    const section = document.createElement("section");
    section.className = "search-section";
    const heading = document.createElement("h2");
    heading.textContent = title;
    const list = document.createElement("ul");
    list.className = "search";
    section.append(heading, list);
    groups.set(title, { section, list, heading });
    const after = [...groups.keys()].filter((other) => order.indexOf(other) > order.indexOf(title));
    const next = after.sort((a, b) => order.indexOf(a) - order.indexOf(b))[0];
    results.insertBefore(section, next ? groups.get(next).section : null);
    return groups.get(title);
  }

  function move() {
    for (const item of results.querySelectorAll(":scope > ul.search > li")) {
      const link = item.querySelector("a");
      if (!link) continue;
      const { list, heading } = groupOf(sectionOf(link));
      list.append(item);
      heading.dataset.count = list.children.length;
    }
  }

  new MutationObserver(move).observe(results, { childList: true, subtree: true });
  move();
});
