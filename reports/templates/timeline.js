// Where in the conversation gold and each arm's picks were said: sessions are the axis, arms the lines.
const LINE = 18, GOLD = "M0-5.5 5.5 0 0 5.5-5.5 0z", PICK = "M3.6 0a3.6 3.6 0 1 1-7.2 0a3.6 3.6 0 1 1 7.2 0z";

function svg(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function timeline(own) {
  const sessions = own.sessions.length;
  if (!sessions) return null;
  const across = (x) => `${((100 * x) / sessions).toFixed(3)}%`;
  const golds = own.gold.map(([id, store, place], i) => {
    const exact = record(own, store, place);
    if (exact) return exact;
    const held = own.hits.flatMap((hits, s) => hits.filter(([, gold]) => gold === i).map(([found]) => record(own, s, found)));
    return held[0] ?? null;
  });
  const drawn = svg("svg", { class: "marks", role: "img", height: LINE * (arms.length + 2) });
  axis(drawn, own, across, golds.filter(Boolean));
  const names = [make("div", "soft", "session"), make("div", "", "gold turns")];
  golds.forEach((found, i) => { if (found) drawn.append(shape("gold", across(found.x), 1, `${own.gold[i][0]}: ${found.text}`)); });
  const reading = ordered().map((a, line) => {
    const each = arms[a], hits = new Map(own.hits[each.store]), picked = order(own.picks[a]), y = line + 2;
    drawn.append(svg("line", { class: "row", x1: "0", x2: "100%", y1: (y + 0.5) * LINE, y2: (y + 0.5) * LINE }));
    for (const golden of [false, true]) for (const place of picked) {
      const found = record(own, each.store, place);
      if (found && hits.has(place) === golden) drawn.append(shape(golden ? "gold" : "pick", across(found.x), y, `${found.id}, ${found.speaker}, ${found.date}: ${found.text}`));
    }
    const reached = new Set(own.hits[each.store].filter(([place]) => picked.includes(place)).map(([, gold]) => gold)).size;
    const share = own.picks[a] === null ? "missing" : own.gold.length ? `${reached}/${own.gold.length}` : "";
    names.push(make("div", "", "", make("span", "label", each.label), make("span", "soft", share)));
    return `${each.label} ${share}`;
  });
  drawn.setAttribute("aria-label", visible(`Gold turns that each arm picked: ${reading.join(", ")}`));
  const box = make("div", "timeline", "", make("div", "names", "", ...names), drawn);
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", "Evidence timeline");
  return make("section", "", "", make("h3", "", "Evidence timeline"), box, legend(own, golds));
}

function axis(drawn, own, across, golds) {
  const every = Math.ceil(own.sessions.length / 24), bottom = LINE * (arms.length + 2);
  own.sessions.forEach(([id, date], s) => {
    drawn.append(svg("line", { class: "tick", x1: across(s), x2: across(s), y1: LINE, y2: bottom }));
    if (s % every) return;
    const text = svg("text", { x: across(s + 0.5), y: 0.75 * LINE, "text-anchor": "middle" }, String(s + 1));
    text.append(svg("title", {}, visible(`${id || "without a session"}${date ? `, ${date}` : ""}`)));
    drawn.append(text);
  });
  golds.forEach((found) => drawn.append(svg("line", { class: "guide", x1: across(found.x), x2: across(found.x), y1: 1.5 * LINE, y2: bottom })));
}

function shape(kind, x, line, title) {
  const path = svg("path", { class: kind, d: kind === "gold" ? GOLD : PICK }, svg("title", {}, visible(title)));
  return svg("svg", { x, y: (line + 0.5) * LINE, overflow: "visible" }, path);
}

function legend(own, golds) {
  const said = [`${own.sessions.length} sessions`], dates = own.sessions.map(([, date]) => date).filter(Boolean).sort();
  if (dates.length) said.push(`${dates[0].slice(0, 10)} to ${dates[dates.length - 1].slice(0, 10)}`);
  const line = make("p", "note", "", `${said.join(", ")}. \u25c6 gold, \u25cb another record that was picked. A dotted line without \u25c6 on an arm's row: gold that it did not pick.`);
  const nowhere = golds.filter((found) => !found).length, many = own.picks.some((picked) => picked && !Array.isArray(picked));
  if (nowhere) line.append(` ${nowhere} of the gold turns ${nowhere === 1 ? "is" : "are"} in no store of this run.`);
  if (many) line.append(" Of long evidence only the gold is drawn.");
  return line;
}

start();
