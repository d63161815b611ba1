// Makes the book, as one page, ready for paper; book/pdf.py runs it in the browser before it prints.
() => {
  for (const part of document.querySelectorAll("details")) part.open = true;
  for (const image of document.images) image.loading = "eager";

  const root = document.documentElement;
  for (const name of ["--pst-font-family-base", "--pst-font-family-monospace"])
    root.style.setProperty(name, `"Book Chinese", ${getComputedStyle(root).getPropertyValue(name) || "sans-serif"}`);

  // Every page numbered its ids by itself. Side by side they need their page's name, and the links must follow.
  const sections = new Map(); // page -> section
  for (const mark of document.querySelectorAll("span[id^='document-']")) {
    const name = mark.id.slice("document-".length);
    mark.nextElementSibling.dataset.page = name;
    sections.set(name, mark.nextElementSibling);
  }
  const pageOf = (node) => node.closest("[data-page]")?.dataset.page ?? "index";
  for (const unprinted of document.querySelectorAll(".tag_hide-output > details [id]")) unprinted.removeAttribute("id");
  const places = new Map(); // id -> {page: element}
  for (const target of document.querySelectorAll("article [id]")) {
    if (!places.has(target.id)) places.set(target.id, new Map());
    const pages = places.get(target.id);
    if (!pages.has(pageOf(target))) pages.set(pageOf(target), target);
  }
  for (const [id, pages] of places) if (pages.size > 1) for (const [page, target] of pages) target.id = `${page}:${id}`;
  for (const link of document.querySelectorAll("article a[href]")) {
    const [, file, id] = /^(?:[^:#]*?([^/:#]*)\.html)?(?:#(.+))?$/.exec(link.getAttribute("href")) ?? [];
    if (!file && !id) continue; // leads out of the book
    const pages = id ? places.get(decodeURIComponent(id)) : sections;
    if (!pages) continue;
    const cited = link.closest(".bibtex-citation") && [...pages].find(([, target]) => target.matches(".citation"));
    const named = [...pages].find(([page]) => file && page.split("/").at(-1) === file);
    const target = cited?.[1] ?? named?.[1] ?? (id ? pages.get(pageOf(link)) ?? [...pages.values()].at(-1) : undefined);
    if (target) link.setAttribute("href", `#${encodeURIComponent(target.id)}`);
  }
}
