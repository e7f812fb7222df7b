// One question: what its script tells of it, and how that is shown.
const told = new Map(), asked = new Map();
const opened = new Set(arms.length ? [0] : []);
const budgets = [...new Set(arms.map((each) => each.budget))];
const byBudget = budgets.flatMap((budget) => arms.map((each, a) => a).filter((a) => arms[a].budget === budget));

// The arms that the filters name come first, so that two that differ are seen together.
const named = () => [...new Set([at("arm").value, at("other").value])].filter((value) => value !== "").map(Number);
const ordered = () => [...named(), ...byBudget.filter((a) => !named().includes(a))];
const again = () => setTimeout(() => { if (chosen >= 0) show(chosen); });
form.addEventListener("input", (event) => {
  if (!/^(arm|other)$/.test(event.target.id)) return;
  if (event.target.value !== "") opened.add(Number(event.target.value));
  again();
});
form.addEventListener("reset", again);

window.details = (number, own) => { told.set(number, own); };

const scriptOf = (number) => `${data.folder}/${String(number).padStart(3, "0")}.js`;

// A script that is there has called `details` when the promise is kept; one that is not is asked for again next time.
function ask(number) {
  if (!asked.has(number)) asked.set(number, new Promise((done) => {
    const script = document.createElement("script");
    script.onload = script.onerror = () => { script.remove(); if (!told.has(number)) asked.delete(number); done(); };
    script.src = scriptOf(number);
    document.head.append(script);
  }));
  return asked.get(number);
}

function show(q) {
  const meta = make("p", "meta", "", make("span", "", data.kinds[questions.kind[q]]), make("span", "", data.conversations[questions.conversation[q]]));
  if (questions.asked[q]) meta.append(make("span", "", `asked ${questions.asked[q]}`));
  const link = make("a", "", questions.id[q]);
  link.href = `#q=${encodeURIComponent(questions.id[q])}`;
  meta.append(link);
  const gold = questions.answer[q];
  const answer = make("p", "answer", "", make("span", "soft", "Gold answer  "), gold === null ? make("span", "soft", "none") : make("span", "", gold));
  const rest = make("div", "rest"), number = questions.script[q];
  detail.replaceChildren(make("h2", "", questions.text[q]), meta, answer, rest);
  detail.scrollTop = 0;
  const fill = () => { const own = told.get(number); rest.replaceChildren(...(own ? parts(q, own) : [lost(number)])); };
  if (told.has(number)) fill();
  else { rest.append(make("p", "note", "Loading …")); ask(number).then(() => { if (rest.isConnected) fill(); }); }
}

function lost(number) {
  const line = make("p", "note", `The details of this question lie in ${scriptOf(number)} beside this page, which is not there or cannot be read. Keep the folder ${data.folder} with the page, or write the report again.`);
  line.setAttribute("role", "alert");
  return line;
}

function parts(q, script) {
  const own = { ...script, ...script.questions[q] };
  const held = make("section", "", "", make("h3", "", "What each arm handed over"));
  if (data.offline && data.judges.length) held.append(make("p", "note", "", make("span", "offline", "offline"), " Answers and scores come from offline programs, not from language models."));
  const first = named();
  let group = null;
  for (const a of ordered()) {
    const heading = first.includes(a) ? "Chosen above" : arms[a].budget;
    if (heading !== group) { group = heading; held.append(make("p", "budget", group)); }
    held.append(arm(own, q, a));
  }
  return [golds(own), timeline(own), held].filter(Boolean);
}

function record(own, store, place) {
  const found = own.records[store];
  if (!found || typeof place !== "number" || place < 0) return null;
  return { id: found.id[place], x: found.x[place], speaker: own.speakers[found.speaker[place]], date: own.dates[found.date[place]], text: found.text[place] };
}

function turn(rank, found, id, hit, extra) {
  const head = make("div", "head");
  if (hit) head.append(make("span", "badge hit", "hit"));
  if (found) head.append(make("b", "", found.speaker), make("span", "", found.date), make("span", "", found.id));
  else head.append(make("span", "", id));
  const body = make("div", "", "", head, found ? make("div", "text", found.text) : make("div", "soft", "This turn's text is in no store of this run."));
  if (extra) body.append(extra);
  return make("li", hit ? "hit" : "", "", make("span", "rank", rank), body);
}

// Places that an arm picked, in order; of many only those that hold gold are known.
const order = (picked) => (Array.isArray(picked) ? picked : picked?.hits ?? []);
const amount = (picked) => (Array.isArray(picked) ? picked.length : picked?.n ?? 0);

function finders(own) {
  const found = own.gold.map(() => []);
  arms.forEach((each, a) => {
    const picked = own.picks[a], best = new Map();
    for (const [place, gold] of own.hits[each.store]) {
      const rank = order(picked).indexOf(place);
      if (rank >= 0 && !(best.get(gold) <= rank)) best.set(gold, rank);
    }
    for (const [gold, rank] of best) {
      const how = entered(own, a, gold);
      found[gold].push((Array.isArray(picked) ? `${each.label} #${rank + 1}` : each.label) + (how ? ` (${how})` : ""));
    }
  });
  return found;
}

// The step with which a gold turn came into an arm's evidence.
function entered(own, a, gold) {
  const trace = own.steps[a], holds = new Set(own.hits[arms[a].store].filter(([, g]) => g === gold).map(([place]) => place));
  const first = trace ? trace.findIndex(([, , , places]) => places.some((place) => holds.has(place))) : -1;
  return first < 0 || own.views[trace[first][0]] === "requirement" ? "" : `step ${first + 1}, ${own.views[trace[first][0]]}`;
}

function golds(own) {
  const section = make("section", "", "", make("h3", "", "Gold turns"));
  if (!own.gold.length) { section.append(make("p", "note", "This question names no gold turn.")); return section; }
  const found = finders(own);
  section.append(make("ol", "turns", "", ...own.gold.map(([id, store, place], i) => {
    const by = found[i].length ? `Picked by ${found[i].length} of ${arms.length} arms: ${found[i].join(", ")}` : "Picked by no arm";
    return turn(i + 1, record(own, store, place), id, false, make("div", "found", by));
  })));
  return section;
}

function chip(own, a, place, hits) {
  const kept = typeof place !== "number" || place >= 0, where = kept ? place : -1 - place;
  const found = record(own, arms[a].store, where);
  const id = found ? found.id.slice(found.id.lastIndexOf("/") + 1) : place;
  const made = make("span", `chip${kept ? " kept" : ""}${hits.has(where) ? " gold" : ""}`, (hits.has(where) ? "\u25c6 " : "") + id);
  if (found) made.title = visible(`${found.speaker}, ${found.date}: ${found.text}`);
  return made;
}

function steps(own, a) {
  const trace = own.steps[a];
  if (!trace) return null;
  const golden = own.hits[arms[a].store], hits = new Set(golden.map(([place]) => place)), seen = new Set();
  const lines = trace.map(([view, cue, returned, places], i) => {
    const kept = places.filter((place) => typeof place !== "number" || place >= 0);
    golden.forEach(([place, gold]) => { if (kept.includes(place)) seen.add(gold); });
    const back = make("td", "back", "", ...places.map((place) => chip(own, a, place, hits)));
    if (returned > places.length) back.append(make("span", "soft", `and ${returned - places.length} more`));
    const total = own.gold.length;
    return make("tr", "", "", make("td", "n", i + 1), make("td", "", own.views[view]), make("td", "cue", cue < 0 ? "the question" : own.cues[cue]),
      make("td", "n", returned), make("td", "n", kept.length), make("td", "n", total ? `${seen.size}/${total}` : "–"), back);
  });
  const heads = ["Step", "View", "Cue", "Came back", "Kept", "Gold so far", "Records that came back"].map((head) => { const th = make("th", "", head); th.scope = "col"; return th; });
  const legend = make("p", "note", "", "Framed: kept. ", make("span", "chip gold", "\u25c6"), " holds gold. Hover for the text.");
  return make("div", "steps", "", make("table", "", "", make("thead", "", "", make("tr", "", "", ...heads)), make("tbody", "", "", ...lines)), legend);
}

function picks(own, a) {
  const picked = own.picks[a], store = arms[a].store;
  if (picked === null) return make("p", "note", "This cell is missing: the arm handed over nothing that was kept.");
  const hits = new Set(own.hits[store].map(([place]) => place));
  const row = (place, i) => turn(i, record(own, store, place), place, hits.has(place));
  if (Array.isArray(picked)) return picked.length ? make("ol", "turns", "", ...picked.map((place, i) => row(place, i + 1))) : make("p", "note", "No record was picked.");
  const note = make("p", "note", `${picked.n.toLocaleString("en")} records were picked; the ${picked.hits.length} that hold gold are shown.`);
  return make("div", "", "", note, make("ol", "turns", "", ...picked.hits.map((place) => row(place, ""))));
}

// What the panel says of the evidence and each judge of the answer, with the diagnosis that follows from both.
function opinions(own, q, a) {
  const said = data.judges.map((judge, j) => {
    const value = data.verdicts[j][a][q];
    if (value === null) return `${judge} not expected`;
    const score = value < 0 ? data.statuses[-1 - value] : (value / 1000).toFixed(2);
    return `${judge} ${score}` + (data.diagnosis.length ? ` (${data.diagnoses[data.diagnosis[j][a][q]][0]})` : "");
  });
  if (data.panel) said.unshift(`evidence ${own.label[a] < 0 ? "not judged" : own.labels[own.label[a]]}`);
  return said.join(" · ");
}

// What the diagnoses of a cell mean, each once.
function causes(q, a) {
  const found = new Set(data.diagnosis.map((judge) => data.diagnoses[judge[a][q]]));
  return [...found].map(([name, meaning]) => `${name}: ${meaning}`).join("\n");
}

function arm(own, q, a) {
  const badge = make("span", "badge");
  mark(badge, data.outcome[a][q]);
  const size = own.picks[a] === null ? [] : [`${amount(own.picks[a]).toLocaleString("en")} records`];
  if (own.calls[a] > 0) size.push(`${own.calls[a]} ${own.calls[a] === 1 ? "call" : "calls"}`);
  if (own.stops[own.stop[a]] === "over_budget") size.push("stopped: over budget");
  const said = own.answer[a] >= 0 ? own.answers[own.answer[a]] : own.status[a] >= 0 ? `(${own.statuses[own.status[a]]})` : "";
  const label = arms[a].label + (arms[a].gold ? " (uses gold)" : "");
  const summary = make("summary", "", "", make("span", "label", label), badge, make("span", "soft", size.join(", ")), make("span", "said", said));
  const told = opinions(own, q, a);
  if (told) summary.append(make("span", "scores", told));
  if (data.diagnosis.length) summary.lastChild.title = causes(q, a);
  const box = make("details", "", "", summary);
  const fill = () => { if (box.open && box.childElementCount === 1) box.append(...[steps(own, a), picks(own, a)].filter(Boolean)); };
  box.addEventListener("toggle", () => { fill(); if (box.open) opened.add(a); else opened.delete(a); });
  if (opened.has(a)) { box.open = true; fill(); }
  return box;
}
