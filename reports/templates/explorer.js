"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { questions, arms } = data;
  const size = questions.id.length;
  const OUTCOMES = { 2: ["complete", "complete"], 1: ["partial", "partial"], 0: ["miss", "miss"], "-": ["no gold", "none"], "?": ["missing", "none"] };
  const at = (id) => document.getElementById(id);
  const form = at("filters"), list = at("list"), detail = at("detail"), count = at("count");

  // Control characters are shown as their pictures; every text reaches the page through textContent alone.
  const visible = (text) => String(text).replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0))).replace(/\u007f/g, "\u2421");
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
  if (!data.judges.length) {
    document.querySelectorAll(".judged").forEach((label) => { label.hidden = true; });
    at("relation").querySelectorAll("[value=won], [value=lost]").forEach((option) => option.remove());
  }

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

  const PAGE = 100;
  const LEVEL = { 0: 0, 1: 1, 2: 2 };
  let shown = [];
  let chosen = -1;
  let rendered = 0;
  const opened = new Set();

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
    shown = [];
    for (let q = 0; q < size; q++) {
      const keep = (kind === "" || questions.kind[q] === Number(kind))
        && (conversation === "" || questions.conversation[q] === Number(conversation))
        && (outcome === "" || own[q] === outcome)
        && (verdict === "" || judged(judge, arm, q) === verdict)
        && (other === "" || related(relation, own[q], theirs[q], judged(judge, arm, q), judged(judge, Number(other), q)))
        && words.every((word) => haystack[q].includes(word));
      if (keep) shown.push(q);
    }
    list.replaceChildren();
    list.scrollTop = 0;
    rendered = 0;
    render(PAGE);
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
    if (place >= rendered) render(place + PAGE);
    if (place >= 0) rowOf(chosen).scrollIntoView({ block: "nearest" });
  }

  function record(store, conversation, place) {
    const shelf = data.records[store]?.[conversation];
    if (!shelf || typeof place !== "number" || place < 0) return null;
    return { id: shelf.id[place], session: data.sessions[shelf.session[place]], speaker: data.speakers[shelf.speaker[place]], date: data.dates[shelf.date[place]], text: shelf.text[place] };
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

  function finders(q) {
    const found = data.gold[q].map(() => []);
    arms.forEach((arm, a) => {
      const picked = data.picks[a][q];
      if (!picked) return;
      const order = Array.isArray(picked) ? picked : picked.hits;
      const best = new Map();
      for (const [place, gold] of data.hits[arm.store][q]) {
        const rank = order.indexOf(place);
        if (rank >= 0 && !(best.get(gold) <= rank)) best.set(gold, rank);
      }
      for (const [gold, rank] of best) {
        const how = entered(a, q, gold);
        found[gold].push((Array.isArray(picked) ? `${arm.label} #${rank + 1}` : arm.label) + (how ? ` (${how})` : ""));
      }
    });
    return found;
  }

  // The step with which a gold turn came into an arm's evidence.
  function entered(a, q, gold) {
    const steps = data.steps[a][q], holds = new Set(data.hits[arms[a].store][q].filter(([, g]) => g === gold).map(([place]) => place));
    const at = steps ? steps.findIndex(([, , , places]) => places.some((place) => holds.has(place))) : -1;
    return at < 0 || data.views[steps[at][0]] === "requirement" ? "" : `step ${at + 1}, ${data.views[steps[at][0]]}`;
  }

  function chip(q, a, place, hits) {
    const kept = typeof place !== "number" || place >= 0, at = kept ? place : -1 - place;
    const found = record(arms[a].store, questions.conversation[q], at);
    const id = found ? found.id.slice(found.id.lastIndexOf("/") + 1) : place;
    const own = make("span", `chip${kept ? " kept" : ""}${hits.has(at) ? " gold" : ""}`, id);
    if (found) own.title = visible(`${found.speaker}, ${found.date}: ${found.text}`);
    return own;
  }

  function steps(q, a) {
    const trace = data.steps[a][q];
    if (!trace) return null;
    const hits = new Set(data.hits[arms[a].store][q].map(([place]) => place)), seen = new Set();
    const rows = trace.map(([view, cue, returned, places], i) => {
      const kept = places.filter((place) => typeof place !== "number" || place >= 0);
      data.hits[arms[a].store][q].forEach(([place, gold]) => { if (kept.includes(place)) seen.add(gold); });
      const back = make("td", "back", "", ...places.map((place) => chip(q, a, place, hits)));
      if (returned > places.length) back.append(make("span", "soft", `and ${returned - places.length} more`));
      const total = data.gold[q].length;
      return make("tr", "", "", make("td", "n", i + 1), make("td", "", data.views[view]), make("td", "cue", cue < 0 ? "the question" : data.cues[cue]),
        make("td", "n", returned), make("td", "n", kept.length), make("td", "n", total ? `${seen.size}/${total}` : "–"), back);
    });
    const heads = ["Step", "View", "Cue", "Came back", "Kept", "Gold so far", "Records that came back"].map((head) => { const th = make("th", "", head); th.scope = "col"; return th; });
    const legend = make("p", "note", "", "Framed: kept. ", make("span", "chip gold", "green"), " holds gold. Hover for the text.");
    return make("div", "steps", "", make("table", "", "", make("thead", "", "", make("tr", "", "", ...heads)), make("tbody", "", "", ...rows)), legend);
  }

  function golds(q) {
    const section = make("section", "", "", make("h3", "", "Gold turns"));
    if (!data.gold[q].length) { section.append(make("p", "note", "This question names no gold turn.")); return section; }
    const found = finders(q);
    section.append(make("ol", "turns", "", ...data.gold[q].map(([id, store, place], i) => {
      const by = found[i].length ? `Picked by ${found[i].join(", ")}` : "Picked by no arm";
      return turn(i + 1, record(store, questions.conversation[q], place), id, false, make("div", "found", by));
    })));
    return section;
  }

  function picks(q, a) {
    const picked = data.picks[a][q], store = arms[a].store;
    if (picked === null) return make("p", "note", "This cell is missing: the arm handed over nothing that was kept.");
    const hits = new Set(data.hits[store][q].map(([place]) => place));
    const row = (place, i) => turn(i, record(store, questions.conversation[q], place), place, hits.has(place));
    if (Array.isArray(picked)) return picked.length ? make("ol", "turns", "", ...picked.map((place, i) => row(place, i + 1))) : make("p", "note", "No record was picked.");
    const note = make("p", "note", `${picked.n.toLocaleString("en")} records were picked; the ${picked.hits.length} that hold gold are shown.`);
    return make("div", "", "", note, make("ol", "turns", "", ...picked.hits.map((place) => row(place, ""))));
  }

  function scores(q, a) {
    return data.judges.map((judge, j) => {
      const value = data.verdicts[j][a][q];
      if (value === null) return `${judge} not expected`;
      return value < 0 ? `${judge} ${data.statuses[-1 - value]}` : `${judge} ${(value / 1000).toFixed(2)}`;
    }).join(" · ");
  }

  function arm(q, a) {
    const badge = make("span", "badge");
    mark(badge, data.outcome[a][q]);
    const picked = data.picks[a][q];
    const parts = picked === null ? [] : [`${(Array.isArray(picked) ? picked.length : picked.n).toLocaleString("en")} records`];
    if (data.calls[a][q] > 0) parts.push(`${data.calls[a][q]} ${data.calls[a][q] === 1 ? "call" : "calls"}`);
    if (data.stops[data.stop[a][q]] === "over_budget") parts.push("stopped: over budget");
    const n = parts.join(", ");
    const answer = data.answer[a][q], status = data.answer_status[a][q];
    const said = answer >= 0 ? data.answers[answer] : status >= 0 ? `(${data.statuses[status]})` : "";
    const label = arms[a].label + (arms[a].gold ? " (uses gold)" : "");
    const summary = make("summary", "", "", make("span", "label", label), badge, make("span", "soft", n), make("span", "said", said));
    if (data.judges.length) summary.append(make("span", "scores", scores(q, a)));
    const box = make("details", "", "", summary);
    const fill = () => { if (box.open && box.childElementCount === 1) box.append(...[steps(q, a), picks(q, a)].filter(Boolean)); };
    box.addEventListener("toggle", () => { fill(); if (box.open) opened.add(a); else opened.delete(a); });
    if (opened.has(a)) { box.open = true; fill(); }
    return box;
  }

  function show(q) {
    const meta = make("p", "meta", "", make("span", "", data.kinds[questions.kind[q]]), make("span", "", data.conversations[questions.conversation[q]]));
    if (questions.asked[q]) meta.append(make("span", "", `asked ${questions.asked[q]}`));
    const link = make("a", "", questions.id[q]);
    link.href = `#q=${encodeURIComponent(questions.id[q])}`;
    meta.append(link);
    const gold = questions.answer[q];
    const answer = make("p", "answer", "", make("span", "soft", "Gold answer  "), gold === null ? make("span", "soft", "none") : make("span", "", gold));
    const held = make("section", "", "", make("h3", "", "What each arm handed over"));
    if (data.offline && data.judges.length) held.append(make("p", "note", "", make("span", "offline", "offline"), " Answers and scores come from offline programs, not from language models."));
    let budget = null;
    arms.map((own, a) => a).forEach((a) => {
      if (arms[a].budget !== budget) { budget = arms[a].budget; held.append(make("p", "budget", budget)); }
      held.append(arm(q, a));
    });
    detail.replaceChildren(make("h2", "", questions.text[q]), meta, answer, golds(q), held);
    detail.scrollTop = 0;
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
  list.addEventListener("scroll", () => { if (list.scrollTop + 2 * list.clientHeight > list.scrollHeight) render(rendered + PAGE); });
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

  if (arms.length) opened.add(0);
  filter();
  if (!fromHash()) {
    if (size) choose(0, { hash: false });
    else detail.replaceChildren(make("p", "note", "This run has no questions."));
  }
})();
