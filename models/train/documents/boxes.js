// What is where on a page of a browser: returns {width, height, parts: [[label, x0, y0, x1, y1]]} in pixels of the
// page. A part is a leaf of the layout that shows something: a run of text, a list, a table, a picture.
const WIDE = document.documentElement.scrollWidth, HIGH = document.documentElement.scrollHeight;
const parts = [];
let list = null;  // The box of the list that text now goes to.

const NOTHING = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "INPUT", "SELECT", "TEXTAREA", "BUTTON", "HEAD",
                         "BR", "HR", "WBR", "IFRAME", "LINK", "META", "OPTION", "AUDIO"]);
const PICTURES = new Set(["IMG", "SVG", "CANVAS", "OBJECT", "VIDEO", "EMBED"]);
const CODE = "pre, div.fragment, table.highlighttable, div.highlight, .programlisting, .screen, .literal-block";
const PROTOTYPE = "dt.sig, div.memproto, dl.py > dt, dl.function > dt, dl.method > dt, dl.class > dt, dl.c > dt, " +
    "dl.cpp > dt, p.src, .admonition-title, .topic-title, .sidebar-title, .memtitle";
const EDGE = /(^|[-_ ])(head(er)?|top-?bar|navbar|navheader|related|nav(igation)?|nav-panel|breadcrumbs?|foot(er)?|navfooter|node|nodenav|top-?nav|menubar|titlearea|bottomNav)([-_ \d]|$)/i;

function union(a, b) {
  if (!a || !b) return a || b;
  return [Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[2], b[2]), Math.max(a[3], b[3])];
}
function shifted(r) {
  return [r.left + scrollX, r.top + scrollY, r.right + scrollX, r.bottom + scrollY];
}
function boxOf(element) {
  return shifted(element.getBoundingClientRect());
}
// The lines of text and pictures from one node to another, without what is clipped to nothing.
function inkOf(first, last) {
  const range = document.createRange();
  range.setStartBefore(first);
  range.setEndAfter(last || first);
  let found = null;
  for (const r of range.getClientRects()) {
    if (r.width > 1 && r.height > 3 && r.right + scrollX > 0) found = union(found, shifted(r));
  }
  return found;
}
// The same for the text alone: boxes of blocks are wider than what they show.
function textOf(element) {
  let found = null;
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.data.trim() && shown(node.parentElement)) found = union(found, inkOf(node));
  }
  return found;
}
function shown(element) {
  if (!element.checkVisibility) return true;
  return element.checkVisibility({checkOpacity: true, checkVisibilityCSS: true});
}
function framed(element) {
  const style = getComputedStyle(element);
  const filled = !/rgba\(\d+, \d+, \d+, 0(\.0\d*)?\)|transparent/.test(style.backgroundColor);
  return filled || ["Top", "Bottom", "Left"].filter(
      side => parseFloat(style[`border${side}Width`]) > 0 && style[`border${side}Style`] !== "none").length >= 2;
}
function add(label, box) {
  if (label !== "list") closeList();
  if (!box) return;
  const cut = [Math.max(0, box[0]), Math.max(0, box[1]), Math.min(WIDE, box[2]), Math.min(HIGH, box[3])];
  if (cut[2] - cut[0] >= 6 && cut[3] - cut[1] >= 6) parts.push([label, ...cut]);
}
function closeList() {
  const box = list && list.box;
  if (!box) return;
  list.box = null;
  add("list", box);
}
function addText(label, box) {
  if (!box) return;
  if (list && label === "paragraph") {
    list.box = union(list.box, [box[0] - list.mark, box[1], box[2], box[3]]);
  } else {
    add(label, box);
  }
}
function words(element) {
  return (element.textContent || "").trim();
}
function isPicture(element) {
  if (!PICTURES.has(element.tagName.toUpperCase())) return false;
  const r = element.getBoundingClientRect();
  return r.width >= 40 && r.height >= 32 && r.width * r.height >= 2500;
}
function addPicture(element) {
  add(element.closest(".math, .formula, .equation, .formulaDsp") ? "formula" : "figure", boxOf(element));
}
// Runs of inline content: text between blocks, and pictures within.
function addRun(nodes, label) {
  let pictures = [], text = false, first = null, last = null;
  for (const node of nodes) {
    if (node.nodeType === 3 ? node.data.trim() : shown(node) && !NOTHING.has(node.tagName)) {
      if (node.nodeType === 1) {
        const within = [node, ...node.querySelectorAll("*")].filter(isPicture);
        pictures = pictures.concat(within.filter(one => !within.some(other => other !== one && other.contains(one))));
      }
      if (words(node).replace(/[¶#§|·•]/g, "").trim()) {
        text = true;
        first = first || node;
        last = node;
      }
    }
  }
  if (text) {
    let found = null;
    for (const node of nodes) {
      if (node.nodeType === 3 && node.data.trim()) found = union(found, inkOf(node));
      else if (node.nodeType === 1 && shown(node)) found = union(found, textOf(node));
    }
    addText(label, found);
  }
  pictures.forEach(addPicture);
}
function isBlock(node) {
  if (node.nodeType !== 1) return false;
  if (NOTHING.has(node.tagName)) return false;
  const display = getComputedStyle(node).display;
  if (display === "contents") return true;
  if (/^inline|^ruby|^none/.test(display)) {
    return display !== "none" && !!node.querySelector("p, div, pre, table, ul, ol, h1, h2, h3");
  }
  return true;
}
function inside(element, label = "paragraph") {
  let run = [];
  for (const node of element.childNodes) {
    if (isBlock(node)) {
      addRun(run, label);
      run = [];
      part(node, label);
    } else {
      run.push(node);
    }
  }
  addRun(run, label);
}
// "header" or "footer" for bars along the upper and lower end of the page.
function edge(element) {
  const named = ["HEADER", "FOOTER", "NAV", "ADDRESS"].includes(element.tagName) ||
      EDGE.test(`${element.className} ${element.id}`) ||
      ["banner", "contentinfo", "navigation"].includes(element.getAttribute("role"));
  if (!named || element.querySelector("h1, pre, img[width='400']")) return null;
  const [x0, y0, x1, y1] = boxOf(element);
  if (x1 - x0 < 0.4 * WIDE || y1 - y0 > 170 || y1 - y0 < 8 || !words(element)) return null;
  if (y0 < 200) return "header";
  return y1 > HIGH - 260 ? "footer" : null;
}
function isTable(table) {
  if (table.querySelector("table, h1, h2, h3, h4, h5, h6")) return false;
  if (table.getAttribute("role") === "presentation" || table.matches(".memname, .navigation, .mlabels")) return false;
  if (table.closest(".note, .warning, .tip, .caution, .important")) return false;
  const rows = [...table.rows].filter(shown), cells = rows.reduce((sum, row) => sum + row.cells.length, 0);
  if (rows.length < 2 || cells < 4 || cells < 1.5 * rows.length || !words(table)) return false;
  return !rows.some(row => row.getBoundingClientRect().height > 420);
}
function part(element, label) {
  const tag = element.tagName.toUpperCase();
  if (NOTHING.has(tag) || !shown(element) && getComputedStyle(element).display !== "contents") return;
  const bar = edge(element);
  if (bar) return add(bar, framed(element) ? boxOf(element) : textOf(element));
  if (isPicture(element)) return addPicture(element);
  if (element.matches(".math, .formulaDsp, .equation, mjx-container[display], .MathJax_Display, math[display=block]")) {
    return add("formula", textOf(element) || inkOf(element.firstChild || element));
  }
  if (element.matches(".imageblock > .title, .tableblock > .title, .listingblock > .title, .exampleblock > .title")) {
    return add("caption", textOf(element));
  }
  if (/^H[1-6]$/.test(tag) || element.matches("div.title, .headertitle, .module-header .caption, [role=heading]")) {
    const main = element === document.querySelector("h1, .headertitle .title, .title h2, h2.title") &&
        element.getBoundingClientRect().top + scrollY < 900;
    if (!words(element)) return [...element.querySelectorAll("img")].filter(isPicture).forEach(addPicture);
    const named = element.matches(".headertitle, .headertitle .title, .module-header .caption, #header .title");
    return add(main || named ? "title" : "heading", textOf(element));
  }
  if (element.matches(PROTOTYPE)) return add("heading", textOf(element));
  if (element.matches(CODE)) {
    if (!words(element)) return;
    const bars = [element, ...element.querySelectorAll("pre")].filter(framed);
    return add("code", bars.length ? boxOf(bars[0]) : textOf(element));
  }
  if (element.matches("caption, figcaption, .caption, p.caption, .figure > .title, .table > .title")) {
    return add("caption", textOf(element));
  }
  if (element.matches(".summary-table, .details-table, .two-column-summary, .three-column-summary, [role=table]")) {
    return add("table", boxOf(element));  // Grids that look like tables.
  }
  if (tag === "TABLE") {
    if (isTable(element)) {
      if (element.caption && words(element.caption)) part(element.caption, label);
      const rows = [...element.rows].filter(shown).map(boxOf).reduce(union, null);
      return add("table", rows);
    }
    return inside(element, label);
  }
  if (["UL", "OL", "MENU", "DL"].includes(tag) && !list) {
    const holds = element.querySelector("h1, h2, h3, h4, h5, h6, dt.sig, .memproto");
    if (tag === "DL" && (holds || element.querySelector("pre, table") || element.matches(".py, .c, .cpp, .js, .std"))) {
      for (const child of element.children) {
        const bold = parseInt(getComputedStyle(child).fontWeight) >= 600;
        if (child.tagName === "DT" && words(child)) {
          add(bold || child.matches(".sig, [id]") ? "heading" : "paragraph", textOf(child));
        } else {
          part(child, label);
        }
      }
      return;
    }
    if (!holds && label === "paragraph") {
      const marked = tag !== "DL" && getComputedStyle(element).listStyleType !== "none";
      list = {box: null, mark: marked ? 1.2 * parseFloat(getComputedStyle(element).fontSize) : 0};
      inside(element, label);
      closeList();
      list = null;
      return;
    }
  }
  if (tag === "P" && element.children.length === 1 && /^(B|STRONG)$/.test(element.children[0].tagName) &&
      words(element) === words(element.children[0]) && words(element).length < 70) {
    return addText(list ? "paragraph" : "heading", textOf(element));
  }
  inside(element, element.matches("figcaption, .caption") ? "caption" : label);
}
inside(document.body);
return {width: WIDE, height: HIGH, parts};
