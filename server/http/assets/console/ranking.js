// Where a question is answered in texts, by the rule of `longview search` (client/cli/search: chunks, words,
// ranking): passages of whole lines, BM25 of word stems and the cosine of vectors, each as z-scores, summed. Stems
// are Porter's first step here, Snowball's English there.
const COMMON_WORDS = new Set(("a an and are as at be but by for if in into is it no not of on or such that the " +
  "their then there these they this to was will with").split(" "));
const ASKING_WORDS = new Set("do does how what when where which who why".split(" "));

// Lower-case words of two characters or more; "parseHTTPHeader_2nd" is parse, http, header, 2nd.
const wordsOf = text => text.replace(/([a-z0-9])(?=[A-Z])|([A-Z])(?=[A-Z][a-z])/g, "$& ").toLowerCase()
  .match(/[\p{L}\p{N}\p{M}]{2,64}/gu) || [];

function stem(word) {
  let cut = word.replace(/sses$/, "ss").replace(/ies$/, "y").replace(/([^s])s$/, "$1");
  const bare = cut.replace(/(ed|ing)$/, "");
  if (bare !== cut && bare.length > 2 && /[aeiouy]/.test(bare)) {
    cut = /(at|bl|iz)$/.test(bare) ? bare + "e" : bare.replace(/([^aeioulsz])\1$/, "$1");
  }
  return cut.length > 3 ? cut.replace(/e$/, "") : cut;
}

// The stems of a question's words, each once; common and asking words only if there are no others.
function questionStems(question) {
  const words = wordsOf(question);
  const telling = words.filter(word => !COMMON_WORDS.has(word) && !ASKING_WORDS.has(word));
  return [...new Set((telling.length ? telling : words).map(stem))];
}

// {words, counts: Map of stem -> times}; common words do not count as length.
function countWords(text) {
  const counts = new Map();
  let words = 0;
  for (const word of wordsOf(text)) {
    if (!COMMON_WORDS.has(word)) ++words;
    const its = stem(word);
    counts.set(its, (counts.get(its) || 0) + 1);
  }
  return { words, counts };
}

// Passages {begin, end (UTF-16 units of the text), first, last (lines from 1)}. They begin where a line that is not
// indented follows a blank one; long ones are cut at any blank line, else where they have grown to their most.
function passagesOf(text) {
  const LEAST = 300, MOST = 1600;
  const lines = [];
  for (let begin = 0; begin < text.length;) {
    const found = text.indexOf("\n", begin);
    const end = found < 0 ? text.length : found;
    const line = text.slice(begin, end);
    lines.push({ begin, end, blank: !line.trim(), indented: /^\s/.test(line), telling: /[\p{L}\p{N}]/u.test(line) });
    begin = end + 1;
  }
  const behind = first => {
    let cut = 0;
    for (let i = first + 1; i < lines.length; ++i) {
      if (lines[i].begin - lines[first].begin >= LEAST && lines[i - 1].blank && !lines[i].blank) {
        if (!lines[i].indented) return i;
        cut = i;
      }
      if (lines[i].end - lines[first].begin > MOST) return cut || i;
    }
    return lines.length;
  };
  const passages = [];
  for (let first = 0, next; first < lines.length; first = next) {
    next = behind(first);
    let from = first, to = next;
    while (from < to && !lines[from].telling) ++from;
    while (from < to && !lines[to - 1].telling) --to;
    if (from < to) passages.push({ begin: lines[from].begin, end: lines[to - 1].end, first: from + 1, last: to });
  }
  return passages;
}

// BM25 (k1 = 1.5, b = 0.75) of each passage, of what countWords gave.
function bm25(counted, stems) {
  const average = counted.reduce((sum, one) => sum + one.words, 0) / counted.length || 1;
  const weights = stems.map(its => {
    const having = counted.filter(one => one.counts.has(its)).length;
    return Math.log1p((counted.length - having + 0.5) / (having + 0.5));
  });
  return counted.map(({ words, counts }) => stems.reduce((sum, its, i) => {
    const times = counts.get(its) || 0;
    return sum + weights[i] * times / (times + 1.5 * (0.25 + 0.75 * words / average));
  }, 0));
}

// Each score less the mean, over the standard deviation; zeros where all are equal.
function zScores(scores) {
  const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
  const deviation = Math.sqrt(scores.reduce((sum, score) => sum + (score - mean) ** 2, 0) / scores.length);
  return scores.map(score => deviation > 0 ? (score - mean) / deviation : 0);
}
