// The list of questions: its filters, its keys, and the question that is chosen.
const data = JSON.parse(document.getElementById("data").textContent);
const { questions, arms } = data;
const size = questions.id.length;
const OUTCOMES = { 2: ["complete", "complete"], 1: ["partial", "partial"], 0: ["miss", "miss"], "-": ["no gold", "none"], "?": ["missing", "none"] };
const at = (id) => document.getElementById(id);
const form = at("filters"), list = at("list"), detail = at("detail"), count = at("count");

// Characters that a browser hides or obeys (controls, marks of direction, separators of lines, tags) are shown by their
// numbers. Every text reaches the page through textContent alone.
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;
const number = (c) => `\u27e8U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
const visible = (text) => String(text).replace(HIDDEN, number);
function make(tag, className, text, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined && text !== null && text !== "") { element.textContent = visible(text); element.dir = "auto"; }
  element.append(...children);
  return element;
}
function options(select, labels) {
  labels.forEach((label, i) => { const o = document.createElement("option"); o.value = i; o.textContent = visible(label); select.append(o); });
}

options(at("kind"), data.kinds);
options(at("conversation"), data.conversations);
options(at("arm"), arms.map((a) => a.label));
options(at("other"), arms.map((a) => a.label));
options(at("judge"), data.judges);
options(at("diagnosis"), data.diagnoses.map(([name, meaning]) => `${name}: ${meaning}`));
if (!data.judges.length) {
  document.querySelectorAll(".judged").forEach((label) => { label.hidden = true; });
  at("relation").querySelectorAll("[value=won], [value=lost]").forEach((option) => option.remove());
}
at("diagnosis").parentElement.hidden = !data.diagnosis.length;

const haystack = questions.text.map((text, q) => `${text ?? ""}\n${questions.answer[q] ?? ""}\n${questions.id[q]}`.toLowerCase());
const rows = new Map();
function rowOf(q) {
  let row = rows.get(q);
  if (row) return row;
  const meta = make("div", "meta", "", make("span", "", data.kinds[questions.kind[q]]), make("span", "", data.conversations[questions.conversation[q]]), make("span", "badge"));
  row = make("li", "", "", make("div", "q", questions.text[q]), meta);
  row.id = `row-${q}`;
  row.setAttribute("role", "option");
  row.dataset.q = q;
  rows.set(q, row);
  return row;
}

const ROWS = 40;
const LEVEL = { 0: 0, 1: 1, 2: 2 };
let shown = [];
let chosen = -1;
let rendered = 0;

// What a judge says of an arm's answer; above one half is right, as in the diagnosis.
function judged(judge, arm, q) {
  const value = data.verdicts[judge]?.[arm]?.[q] ?? -1;
  return value < 0 ? "none" : value > 500 ? "right" : "wrong";
}

function related(relation, a, b, verdict, theirs) {
  if (!relation) return true;
  if (relation === "won") return verdict === "right" && theirs === "wrong";
  if (relation === "lost") return verdict === "wrong" && theirs === "right";
  if (!(a in LEVEL) || !(b in LEVEL)) return false;
  return relation === "differ" ? a !== b : relation === "above" ? LEVEL[a] > LEVEL[b] : LEVEL[a] < LEVEL[b];
}

function filter() {
  const words = at("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const kind = at("kind").value, conversation = at("conversation").value, outcome = at("outcome").value;
  const arm = Number(at("arm").value || 0), other = at("other").value, relation = at("relation").value;
  const own = data.outcome[arm] ?? "", theirs = other === "" ? "" : data.outcome[Number(other)];
  const judge = Number(at("judge").value || 0), verdict = at("verdict").value;
  at("relation").disabled = other === ""; // there is nothing to stand in a relation to
  const diagnosis = at("diagnosis").value, causes = data.diagnosis[judge]?.[arm] ?? "";
  shown = [];
  for (let q = 0; q < size; q++) {
    const keep = (kind === "" || questions.kind[q] === Number(kind))
      && (conversation === "" || questions.conversation[q] === Number(conversation))
      && (outcome === "" || own[q] === outcome)
      && (verdict === "" || judged(judge, arm, q) === verdict)
      && (diagnosis === "" || causes[q] === diagnosis)
      && (other === "" || related(relation, own[q], theirs[q], judged(judge, arm, q), judged(judge, Number(other), q)))
      && words.every((word) => haystack[q].includes(word));
    if (keep) shown.push(q);
  }
  list.replaceChildren();
  list.scrollTop = 0;
  rendered = 0;
  render(ROWS);
  count.textContent = `${shown.length.toLocaleString("en")} of ${size.toLocaleString("en")} questions` + (arms.length ? `, marked by ${visible(arms[arm].label)}` : "");
}

// The list holds as many of the found questions as have been scrolled or stepped to.
function render(until) {
  const own = data.outcome[Number(at("arm").value || 0)] ?? "";
  const end = Math.min(shown.length, until);
  const fresh = document.createDocumentFragment();
  for (; rendered < end; rendered++) {
    const q = shown[rendered], row = rowOf(q);
    mark(row.lastChild.lastChild, own[q]);
    row.setAttribute("aria-selected", String(q === chosen));
    row.setAttribute("aria-setsize", shown.length);
    row.setAttribute("aria-posinset", rendered + 1);
    fresh.append(row);
  }
  list.append(fresh);
}

function mark(badge, outcome) {
  const [word, style] = OUTCOMES[outcome] ?? ["", "none"];
  badge.className = `badge ${style}`;
  badge.textContent = word;
}

function choose(q, { scroll = true, hash = true } = {}) {
  if (q < 0 || q >= size) return;
  rows.get(chosen)?.setAttribute("aria-selected", "false");
  chosen = q;
  if (scroll) reveal();
  rowOf(q).setAttribute("aria-selected", "true");
  list.setAttribute("aria-activedescendant", rowOf(q).id);
  if (hash) history.replaceState(null, "", `#q=${encodeURIComponent(questions.id[q])}`);
  show(q);
}

function reveal() {
  const place = shown.indexOf(chosen);
  if (place >= rendered) render(place + ROWS);
  if (place >= 0) rowOf(chosen).scrollIntoView({ block: "nearest" });
}

function step(by) {
  if (!shown.length) return;
  const place = shown.indexOf(chosen);
  const next = place < 0 ? (by > 0 ? 0 : shown.length - 1) : Math.min(shown.length - 1, Math.max(0, place + by));
  choose(shown[next]);
}

function fromHash() {
  const match = /^#q=(.*)$/.exec(location.hash);
  if (!match) return false;
  let id = match[1];
  try { id = decodeURIComponent(id); } catch { /* a hash typed by hand may hold a bare percent sign */ }
  const q = questions.id.indexOf(id);
  if (q < 0) { detail.replaceChildren(make("p", "note", `No question has the id ${id}.`)); return true; }
  if (!shown.includes(q)) { form.reset(); filter(); }
  choose(q, { hash: false });
  return true;
}

form.addEventListener("input", filter);
form.addEventListener("submit", (event) => { event.preventDefault(); list.focus(); step(1); });
form.addEventListener("reset", () => setTimeout(() => { filter(); reveal(); }));
list.addEventListener("click", (event) => { const row = event.target.closest("li"); if (row) choose(Number(row.dataset.q), { scroll: false }); });
list.addEventListener("scroll", () => { if (list.scrollTop + 2 * list.clientHeight > list.scrollHeight) render(rendered + ROWS); });
window.addEventListener("hashchange", fromHash);
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "Escape" && typing) { event.target.blur(); list.focus(); return; }
  if (typing) return;
  const inList = document.activeElement === list, free = inList || document.activeElement === document.body;
  const moves = { j: 1, k: -1 };
  if (free) Object.assign(moves, { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -size, End: size });
  if (event.key in moves) { event.preventDefault(); step(moves[event.key]); }
  else if (event.key === "/") { event.preventDefault(); at("search").focus(); at("search").select(); }
  else if (event.key === "Enter" && free) { event.preventDefault(); detail.focus(); }
});

function start() {
  filter();
  if (fromHash()) return;
  if (size) choose(0, { hash: false });
  else detail.replaceChildren(make("p", "note", "This run has no questions."));
}
