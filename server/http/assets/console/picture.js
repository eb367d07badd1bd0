// The tab of pictures: classes, or objects with their boxes drawn.
const COLOURS = ["#d62728", "#1f77b4", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#e377c2", "#8c564b"];

// A page as a scanner might see it, drawn here: a heading, two paragraphs and a table.
function drawPage(canvas) {
  canvas.width = 620;
  canvas.height = 800;
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#fdfdfb";
  pen.fillRect(0, 0, 620, 800);
  pen.fillStyle = "#111";
  pen.font = "bold 30px serif";
  pen.fillText("Annual Report of the Harbour", 60, 90);
  pen.font = "15px serif";
  for (let row = 0; row < 9; ++row) {
    pen.fillText("Traffic grew again, most of it in grain and in containers, while".slice(row % 3), 60,
      140 + 22 * row + (row > 4 ? 30 : 0));
  }
  for (let row = 0; row < 5; ++row) {
    for (let column = 0; column < 4; ++column) {
      pen.strokeRect(60 + 125 * column, 420 + 34 * row, 125, 34);
      pen.fillText(row ? String(1000 * row + 37 * column) : "2" + (column + 20), 72 + 125 * column, 442 + 34 * row);
    }
  }
}

function drawBoxes(canvas, picture, detections, chosen = null) {
  canvas.width = picture.width;
  canvas.height = picture.height;
  const pen = canvas.getContext("2d");
  pen.drawImage(picture, 0, 0);
  const unit = Math.max(picture.width, picture.height) / 600;
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
  const threshold = number(0.3, { min: 0, max: 1, step: 0.05 });
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
