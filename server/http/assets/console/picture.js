// The tab of pictures: classes, or objects with their boxes drawn.
const COLOURS = ["#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#e377c2", "#8c564b"];

const PAGE_WORDS = ("Traffic grew again in every quarter, most of it in grain and in containers. The new quay took its first " +
  "ships in May, a month before it was due, and the railway now reaches all berths. Nobody was hurt. ").repeat(4);

// A page of a report, drawn here. Returns the boxes of its parts, {label, x0, y0, x1, y1}, for who checks what is found.
function drawPage(canvas) {
  canvas.width = 900;
  canvas.height = 1200;
  const pen = canvas.getContext("2d");
  const parts = [];
  const left = 90, right = 810;
  pen.fillStyle = "#fff";
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = "#111";
  pen.font = "bold 40px serif";
  pen.fillText("Annual Report of the Harbour", left, 130);
  parts.push({ label: "title", x0: left, y0: 98, x1: left + pen.measureText("Annual Report of the Harbour").width, y1: 140 });
  pen.font = "19px serif";
  const paragraph = (top, count, from) => {
    const words = PAGE_WORDS.split(" ").slice(from);
    let line = "", row = 0;
    while (row < count) {
      const next = line + words.shift() + " ";
      if (pen.measureText(next + words[0]).width < right - left) {
        line = next;
        continue;
      }
      pen.fillText(next, left, top + 18 + 27 * row++);
      line = "";
    }
    parts.push({ label: "paragraph", x0: left, y0: top, x1: right, y1: top + 27 * count });
  };
  paragraph(190, 6, 0);
  paragraph(400, 5, 7);
  const cells = [["Year", "Ships", "Grain", "Crew"], ...[2021, 2022, 2023, 2024, 2025].map(
    (year, i) => [year, 410 + 37 * i, 1200 + 61 * i, 96 + i].map(String))];
  for (const [row, texts] of cells.entries()) {
    for (const [column, text] of texts.entries()) {
      pen.strokeRect(left + 180 * column, 600 + 40 * row, 180, 40);
      pen.fillText(text, left + 16 + 180 * column, 627 + 40 * row);
    }
  }
  parts.push({ label: "table", x0: left, y0: 600, x1: right, y1: 840 });
  paragraph(890, 6, 3);
  return parts;
}

function drawBoxes(canvas, picture, detections, chosen = null) {
  canvas.width = picture.width;
  canvas.height = picture.height;
  const pen = canvas.getContext("2d");
  pen.drawImage(picture, 0, 0);
  const unit = Math.max(picture.width, picture.height) / 800;
  pen.font = `${Math.round(14 * unit)}px system-ui, sans-serif`;
  for (const found of detections) {
    if (chosen && found !== chosen) continue;
    const colour = COLOURS[found.label_id % COLOURS.length];
    pen.strokeStyle = pen.fillStyle = colour;
    pen.lineWidth = (found === chosen ? 4 : 2) * unit;
    pen.strokeRect(found.x0, found.y0, found.x1 - found.x0, found.y1 - found.y0);
    const words = `${found.label} ${found.score.toFixed(2)}`;
    const top = Math.max(0, found.y0 - 18 * unit);
    pen.fillRect(found.x0, top, pen.measureText(words).width + 8 * unit, 18 * unit);
    pen.fillStyle = "#fff";
    pen.fillText(words, found.x0 + 4 * unit, top + 14 * unit);
  }
}

function detectionsOf(canvas, picture, detections) {
  const inside = (found, x, y) => x >= found.x0 && x <= found.x1 && y >= found.y0 && y <= found.y1;
  const area = found => (found.x1 - found.x0) * (found.y1 - found.y0);
  canvas.onmousemove = event => {
    const scale = canvas.width / canvas.clientWidth;
    const under = detections.filter(found => inside(found, event.offsetX * scale, event.offsetY * scale));
    drawBoxes(canvas, picture, detections, under.sort((a, b) => area(a) - area(b))[0] || null);
  };
  canvas.onmouseleave = () => drawBoxes(canvas, picture, detections);
  drawBoxes(canvas, picture, detections);
  return table("Objects", ["Label", "Score", "Box"], detections.map(found =>
    [found.label, found.score, [found.x0, found.y0, found.x1, found.y1].map(Math.round).join(", ")]));
}

TABS_TO_ADD.push({ name: "Picture", fits: serves("object-detection", "image-classification"), build(panel, tab) {
  const canvas = make("canvas", { hidden: true, role: "img", "aria-label": "The picture, with boxes of what was found" });
  const file = make("input", { type: "file", accept: "image/*", "aria-label": "Open a picture" });
  const threshold = number(0.6, { min: 0, max: 1, step: 0.05 });
  let picture = null;
  let blob = null;
  const take = async given => {
    blob = given;
    picture = await createImageBitmap(given);
    canvas.hidden = false;
    canvas.onmousemove = canvas.onmouseleave = null;
    drawBoxes(canvas, picture, []);
  };
  file.addEventListener("change", () => file.files.length && take(file.files[0]));
  const sample = () => {
    const page = make("canvas");
    drawPage(page);
    page.toBlob(take, "image/png");
  };
  const box = make("div", { className: "drop" }, make("div", { className: "row" },
    make("button", { type: "button", onclick: sample }, "Sample"), file,
    make("span", { className: "muted" }, "or drop one here")), canvas);
  takeDrops(box, take);
  addForm(tab, [make("div", { className: "row" }, modelSelect(tab),
    labelled("Least score of a box", threshold)), box], "Look", async () => {
    if (!blob) throw new Error("Choose a picture first, or take the sample.");
    const model = MODELS.find(one => one.id === tab.select.value);
    const detects = serves("object-detection")(model);
    const query = new URLSearchParams({ model: model.id });
    if (detects) query.set("score_threshold", threshold.value);
    const path = `/v1/${detects ? "detect" : "classify"}?${query}`;
    const type = blob.type || "image/png";
    const [answer, seconds] = await timed(request(path, {
      method: "POST", body: blob, headers: { "Content-Type": type } }));
    if (!detects) drawBoxes(canvas, picture, []);
    return [detects ? detectionsOf(canvas, picture, answer.detections) : scores("Labels by score", answer.labels),
      timing(answer, seconds),
      showCode(`curl --data-binary @page.png${curlKey()} -H 'Content-Type: ${type}' ${quoted(location.origin + path)}`,
        `import requests\n\nwith open("page.png", "rb") as file:\n    answer = requests.post(${
          JSON.stringify(location.origin + path)}, data=file,\n                           headers={${
          [`"Content-Type": ${JSON.stringify(type)}`, pythonKey()].filter(Boolean).join(", ")}})\nprint(answer.json())`)];
  });
} });
