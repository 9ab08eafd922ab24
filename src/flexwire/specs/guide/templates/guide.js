"use strict";
(() => {
  const root = document.documentElement.dataset.root;
  const make = (name, text, kind) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };

  // Versions: one is shown at a time, and the address selects it.
  const data = JSON.parse(document.getElementById("data")?.textContent ?? "[]");
  const sections = [...document.querySelectorAll("section.version")];
  const links = [...document.querySelectorAll(".versions a")];
  const compare = document.getElementById("compare");
  const choose = (section) => {
    for (const one of sections) one.classList.toggle("chosen", one === section);
    for (const link of links) {
      if (link.hash === `#${section.id}`) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  };
  const show = () => {
    let name = location.hash.slice(1);
    try {
      name = decodeURIComponent(name);
    } catch {
      // A name that is not validly encoded is used unchanged.
    }
    const pair = /^diff-v(\d+)-v(\d+)$/.exec(name);
    if (pair && compare && offer(pair[1], pair[2])) {
      compare.scrollIntoView();
      return;
    }
    const target = name && document.getElementById(name);
    const section = target && target.closest("section.version");
    if (section) choose(section);
    if (target) target.scrollIntoView({ block: target === section ? "start" : "center" });
  };

  // Differences: the data lists them, and the rows come from the versions' tables.
  const columns = [[1, 1], [2, 2], [4, 3], [8, 4]];
  const rowsOf = (side, version) =>
    document.querySelector(`#v${version} table[data-side="${side}"]`)?.tBodies[0].rows ?? [];
  const copy = (row, kind) => {
    const made = row.cloneNode(true);
    made.removeAttribute("id");
    const head = made.cells[0];
    head.removeAttribute("style");
    const path = make("code");
    // In a narrow column, a path is broken after a dot.
    row.dataset.path.split(/(?<=\.)/).forEach((name) => path.append(name, make("wbr")));
    head.replaceChildren(make("span", kind, `kind ${kind}`), " ", path);
    made.deleteCell(5);
    return made;
  };
  const changed = (old, now, aspects) => {
    const made = copy(now, "changed");
    for (const [bit, column] of columns) {
      if (!(aspects & bit)) continue;
      const before = make("del");
      const after = make("ins");
      before.append(...old.cells[column].cloneNode(true).childNodes);
      after.append(...made.cells[column].childNodes);
      if (!before.textContent) before.textContent = "none";
      if (!after.textContent) after.textContent = "none";
      made.cells[column].replaceChildren(before, " → ", after);
    }
    return made;
  };
  const differing = (side, old, now) => {
    const box = make("div");
    box.append(make("h3", `${side.name} v${old} → v${now}`));
    const [from, to] = [side.versions.indexOf(old), side.versions.indexOf(now)];
    if (from < 0 || to < 0) {
      box.append(make("p", `${side.name} has no version ${from < 0 ? old : now}.`, "empty"));
      return box;
    }
    const facts = side.facts[`${side.states[from]}-${side.states[to]}`] ?? [];
    const steps = side.steps[`${side.layouts[from]}-${side.layouts[to]}`] ?? [];
    if (facts.length) {
      const list = make("ul", undefined, "changes");
      for (const [name, before, after] of facts) {
        const item = make("li", undefined, "changed");
        const sign = make("span", "~", "sign");
        sign.setAttribute("aria-hidden", "true");
        const text = make("span", `${name}: `);
        text.append(make("del", before), " → ", make("ins", after));
        item.append(sign, text);
        list.append(item);
      }
      box.append(list);
    }
    if (!facts.length && !steps.length) box.append(make("p", "No difference.", "empty"));
    if (!steps.length) return box;
    const olds = rowsOf(side.side, old);
    const news = rowsOf(side.side, now);
    const scroll = make("div", undefined, "scroll");
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", `Fields of ${side.name} that differ`);
    scroll.tabIndex = 0;
    const table = make("table", undefined, "fields");
    const head = table.createTHead().insertRow();
    for (const name of ["Field", "Type", "On the wire", "Default", "Properties"]) {
      const cell = make("th", name);
      cell.scope = "col";
      head.append(cell);
    }
    const body = table.createTBody();
    for (const [at, to, aspects] of steps) {
      if (at < 0) body.append(copy(news[to], "added"));
      else if (to < 0) body.append(copy(olds[at], "removed"));
      else body.append(changed(olds[at], news[to], aspects));
    }
    scroll.append(table);
    box.append(scroll);
    return box;
  };
  const offer = (one, other) => {
    const selects = [document.getElementById("old"), document.getElementById("new")];
    const pair = [Number(one), Number(other)].sort((a, b) => a - b);
    const known = [...selects[0].options].map((option) => Number(option.value));
    if (!pair.every((version) => known.includes(version))) return false;
    pair.forEach((version, place) => { selects[place].value = String(version); });
    document.getElementById("differences").replaceChildren(...data.map((side) => differing(side, ...pair)));
    return true;
  };
  if (sections.length) {
    document.documentElement.classList.add("js");
    // These anchors are for readers without scripts. Here, the comparison shows what the anchors name.
    for (const step of document.querySelectorAll(".step")) step.removeAttribute("id");
    choose(sections[0]);
  }
  if (compare) {
    compare.hidden = false;
    document.querySelector(".needs-script").hidden = false;
    const options = [...document.getElementById("old").options].map((option) => option.value);
    offer(options[options.length - 2], options[options.length - 1]);
    compare.addEventListener("change", () => {
      const pair = ["old", "new"].map((name) => document.getElementById(name).value);
      pair.sort((a, b) => a - b);
      history.replaceState(null, "", `#diff-v${pair[0]}-v${pair[1]}`);
      offer(...pair);
    });
  }
  window.addEventListener("hashchange", show);
  window.addEventListener("beforeprint", () => {
    for (const one of document.querySelectorAll("details")) one.open = true;
  });
  show();

  // Search.
  const guide = window.flexwireGuide;
  const input = document.getElementById("search");
  const found = document.getElementById("found");
  if (!guide) return;
  const plain = (text) => text.toLowerCase().replaceAll(/[_\-\s]/g, "");
  const entries = guide.pages.map(([title, kind, key, path, versions, names]) => ({
    title, path, api: kind === "api", key: String(key), words: [title, ...names].map(plain),
    note: kind === "api" ? `API ${key}, versions ${versions}` : `${kind}, versions ${versions}`,
  }));
  const fields = guide.fields.map(([path, type, page, place]) => ({
    title: path, path: `${entries[page].path}#${place}`, name: plain(path.slice(path.lastIndexOf(".") + 1)),
    type: plain(type), owner: entries[page],
    note: `${type} in ${entries[page].title}${entries[page].api ? ` ${place.split("-")[1]}` : ""}`,
  }));
  const fit = (text, word) => (text === word ? 0 : text.startsWith(word) ? 1 : text.includes(word) ? 2 : 9);
  // Lower ranks come first: an API by its name or key, a message, a field by its name, then by its type.
  const rankPage = (page, word) => {
    const best = page.key === word ? 0 : Math.min(...page.words.map((text) => fit(text, word)));
    return best === 9 ? 99 : [0, 2, 3][best] + (page.api ? 0 : 0.5);
  };
  const rankField = (field, word) => {
    // A number can only be a key.
    if (/^\d+$/.test(word)) return 99;
    const behind = field.owner.api ? 0 : 0.5;
    const name = fit(field.name, word);
    if (name < 9) return [1, 4, 6][name] + behind;
    const type = fit(field.type.replace("[]", ""), word);
    return type < 9 ? [7, 8, 10][type] + behind : 99;
  };
  const search = (text) => {
    const words = text.split(/\s+/).map(plain).filter(Boolean);
    if (!words.length) return [];
    const whole = plain(text);
    const ranked = [];
    for (const page of entries) {
      const rank = rankPage(page, whole);
      if (rank < 99) ranked.push([rank, page]);
    }
    for (const field of fields) {
      let rank = rankField(field, whole);
      if (rank === 99 && words.length > 1) {
        const own = words.filter((word) => rankField(field, word) < 99);
        const rest = words.filter((word) => rankField(field, word) === 99);
        if (own.length && rest.every((word) => rankPage(field.owner, word) < 99)) {
          // This result comes after those that contain all words as one.
          rank = 0.25 + Math.max(...own.map((word) => rankField(field, word)), ...rest.map((word) => rankPage(field.owner, word)));
        }
      }
      if (rank < 99) ranked.push([rank, field]);
    }
    const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
    ranked.sort((a, b) => a[0] - b[0] || a[1].title.length - b[1].title.length || order(a[1].title, b[1].title) || order(a[1].note, b[1].note));
    return ranked.slice(0, 40).map((pair) => pair[1]);
  };
  let chosen = -1;
  const select = (place) => {
    const items = [...found.querySelectorAll("[role=option]")];
    chosen = items.length ? (place + items.length) % items.length : -1;
    items.forEach((item, at) => item.setAttribute("aria-selected", String(at === chosen)));
    if (chosen < 0) input.removeAttribute("aria-activedescendant");
    else {
      input.setAttribute("aria-activedescendant", items[chosen].id);
      items[chosen].scrollIntoView({ block: "nearest" });
    }
  };
  const close = () => {
    found.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const open = () => {
    const results = search(input.value);
    found.replaceChildren(...results.map((one, at) => {
      const item = make("li");
      item.id = `found-${at}`;
      item.setAttribute("role", "option");
      const link = make("a");
      link.href = root + one.path.split("#").map(encodeURI).join("#");
      link.tabIndex = -1;
      link.append(make("code", one.title), make("small", one.note));
      item.append(link);
      return item;
    }));
    if (!results.length) found.append(make("li", "Nothing found", "nothing"));
    document.getElementById("found-count").textContent = input.value.trim() ? `${results.length} found` : "";
    found.hidden = !input.value.trim();
    input.setAttribute("aria-expanded", String(!found.hidden));
    select(0);
  };
  document.querySelector(".search").hidden = false;
  input.addEventListener("input", open);
  input.addEventListener("focus", () => { if (input.value) open(); });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (found.hidden) open();
      else select(chosen + (event.key === "ArrowDown" ? 1 : -1));
    } else if (event.key === "Enter") {
      const link = found.querySelector("[aria-selected=true] a");
      if (link && !found.hidden) {
        event.preventDefault();
        close();
        location.href = link.href;
      }
    } else if (event.key === "Escape") {
      close();
      input.blur();
    }
  });
  found.addEventListener("click", close);
  document.addEventListener("click", (event) => { if (!event.target.closest(".search")) close(); });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      input.focus();
      input.select();
    }
  });
})();
