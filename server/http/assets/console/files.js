// Text files to search: dropped onto the page, opened, or of the server's --search_folder.
const MOST_FILES = 2000, MOST_FILE_BYTES = 1 << 20, MOST_TEXT_BYTES = 16 << 20;
const TOO_MANY = `More than ${MOST_FILES.toLocaleString("en")} files: take a smaller folder here, or the whole by ` +
  "`longview search FOLDER QUESTION`.";

const isLeftOut = path => path.split("/").some(part =>
  part.startsWith(".") || part === "node_modules" || part === "__pycache__");

// The files below what was dropped, [{path, file}]; stops where there are too many.
async function droppedFiles(transfer) {
  // The list of a drop is empty once its event is over.
  const entries = [...transfer.items].map(item => item.webkitGetAsEntry?.()).filter(Boolean);
  const loose = [...transfer.files].map(file => ({ path: file.name, file }));
  if (!entries.length) return checkCount(loose);
  const found = [];
  const walk = async (entry, path) => {
    if (isLeftOut(path)) return;
    if (entry.isFile) {
      checkCount(found).push({ path, file: await new Promise((done, fail) => entry.file(done, fail)) });
      return;
    }
    const reader = entry.createReader();
    for (let some; (some = await new Promise((done, fail) => reader.readEntries(done, fail))).length;) {
      for (const one of some) await walk(one, path + "/" + one.name);
    }
  };
  for (const entry of entries) await walk(entry, entry.name);
  return checkCount(found);
}

function checkCount(files) {
  if (files.length > MOST_FILES) throw new Error(TOO_MANY);
  return files;
}

const openedFiles = list => checkCount([...list].map(
  file => ({ path: file.webkitRelativePath || file.name, file })).filter(one => !isLeftOut(one.path)));

// The texts among the files, [{path, text}] by path, and what was left out, in words. `told`: called with progress.
async function readTexts(files, told) {
  const texts = [], large = [];
  let binary = 0, total = 0;
  for (const [i, { path, file }] of files.sort((a, b) => a.path < b.path ? -1 : 1).entries()) {
    if (file.size > MOST_FILE_BYTES) {
      large.push(path);
      continue;
    }
    if ((total += file.size) > MOST_TEXT_BYTES) {
      throw new Error(`More than ${bytes(MOST_TEXT_BYTES)} of text: take a smaller folder.`);
    }
    if (i % 50 === 0) told(`Reading the files: ${i} of ${files.length}`);
    const text = await file.text();
    if (text.slice(0, 8192).includes("\0")) ++binary;
    else if (text.trim()) texts.push({ path, text });
  }
  const left = [large.length && `${large.length} above ${bytes(MOST_FILE_BYTES)} (${large[0]})`,
    binary && `${binary} binary`].filter(Boolean);
  return { texts, left: left.length ? "; left out: " + left.join(", ") : "" };
}

// What the server lists of its folder, as files whose text() is fetched. Null where it serves none.
async function serverFiles() {
  const response = await fetch("/v1/search/files", { headers: headers() });
  if (response.status === 404) return null;
  if (!response.ok) throw new Error(errorText((await response.json()).error));
  const listed = await response.json();
  return { ...listed, files: listed.files.map(({ path, bytes: size }) => ({ path, file: { size,
    text: async () => (await request("/v1/search/file?" + new URLSearchParams({ path }))).text() } })) };
}
