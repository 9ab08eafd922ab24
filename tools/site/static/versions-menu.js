// The versions beside this one, as versions.js lists them; a page that another one lacks leads to its front.
document.addEventListener("DOMContentLoaded", () => {
  const menu = document.getElementById("versions");
  const versions = window.flexwireVersions;
  if (!menu || !versions) return;
  menu.replaceChildren(
    ...versions.map(({ name, pages }) => {
      const page = pages.includes(menu.dataset.page) ? menu.dataset.page : "index.html";
      const option = new Option(name, `${menu.dataset.up}../${name}/${page}`);
      option.selected = name === menu.dataset.here;
      return option;
    }),
  );
  menu.addEventListener("change", () => {
    location.href = menu.value;
  });
});
