"use strict";
// The page's state is its address: ?view=events|search|map with days and filters, and the open event or article.
// No library, no build step: the server sends this file as it is.
const $ = id => document.getElementById(id);
const isUrl = text => /^https?:\/\/\S+$/.test(text);
const VIEWS = ["events", "search", "map"];
const DAYS = ["since", "until"], FILTERS = [...DAYS, "language", "publisher"];
const PAGE = 30, RETRY_MS = 1500;
const COLORS = ["#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#b6992d", "#af7aa1", "#ff9da7", "#9c755f", "#79706e", "#499894", "#d37295", "#8cd17d", "#86bcb6"];
let turn = 0;  // an answer that comes after a later question is dropped
let shown = 0;  // events on the page
let answered = null;  // the last answer about days

// Asks with the API key, if the server wants one; it is kept until the tab is closed.
async function ask(path) {
  const key = sessionStorage.getItem("key");
  const response = await fetch(path, key ? { headers: { Authorization: `Bearer ${key}` } } : {});
  if (response.status === 401) $("access").hidden = false;
  return response;
}

// The JSON of an answer; while the server finds events, it asks again.
async function answer(path, mine) {
  for (;;) {
    const response = await ask(path);
    const body = await response.json();
    if (response.ok) return body;
    if (response.status !== 503 || mine !== turn) throw new Error(detail(body));
    say(detail(body));
    await new Promise(resume => setTimeout(resume, RETRY_MS));
    if (mine !== turn) throw new Error("");
  }
}

function detail(body) {
  if (typeof body.detail === "string") return body.detail;
  return (body.detail || []).map(part => part.msg).join("; ") || "the server refused the request";
}

function element(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function drawing(tag, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

function say(text, bad) {
  $("message").textContent = text;
  $("message").toggleAttribute("data-bad", Boolean(bad));
}

const counted = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
const dayOf = text => new Date(`${text}T00:00:00Z`);
const shifted = (text, days) => new Date(dayOf(text).getTime() + days * 864e5).toISOString().slice(0, 10);
const readable = text => dayOf(text).toLocaleDateString("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const range = (first, last) => first === last ? readable(first) : `${readable(first)} – ${readable(last)}`;

// A text with the words of the query marked; places are counted in characters, as Python does.
function marked(node, text, places) {
  const characters = [...text];
  let last = 0;
  for (const [start, end] of places || []) {
    node.append(characters.slice(last, start).join(""), element("mark", "", characters.slice(start, end).join("")));
    last = end;
  }
  node.append(characters.slice(last).join(""));
  return node;
}

function link(article, className, places) {
  const node = marked(element(isUrl(article.url) ? "a" : "span", className), article.title || article.url || article.doc_id, article.title ? places : []);
  if (isUrl(article.url)) Object.assign(node, { href: article.url, target: "_blank", rel: "noopener noreferrer" });
  if (article.language) node.lang = article.language;
  node.dir = "auto";
  return node;
}

const facts = article => element("div", "meta", [article.publisher, article.byline_date && readable(article.byline_date), article.language].filter(Boolean).join(" · "));

function picture(url) {
  const node = element("img", "picture");
  Object.assign(node, { src: url, alt: "", loading: "lazy", decoding: "async", referrerPolicy: "no-referrer" });
  node.addEventListener("error", () => node.remove());
  return node;
}

// Bars of reports a day, from the first to the last.
function timeline(event) {
  const days = Math.round((dayOf(event.last) - dayOf(event.first)) / 864e5) + 1;
  const most = Math.max(...event.timeline.map(([, count]) => count));
  const node = drawing("svg", { class: "timeline", viewBox: `0 0 ${Math.max(days, 7) * 10} 20`, preserveAspectRatio: "none", role: "img" });
  node.append(drawing("line", { x1: 0, x2: Math.max(days, 7) * 10, y1: 20, y2: 20 }));
  for (const [day, count] of event.timeline) {
    const height = 18 * count / most, x = Math.round((dayOf(day) - dayOf(event.first)) / 864e5) * 10;
    const bar = drawing("rect", { x: x + 1, y: 20 - height, width: 8, height });
    bar.append(drawing("title", {}));
    bar.firstChild.textContent = `${readable(day)}: ${counted(count, "report", "reports")}`;
    node.append(bar);
  }
  node.setAttribute("aria-label", `${counted(event.articles, "report", "reports")}, ${range(event.first, event.last)}`);
  return node;
}

function chips(event) {
  const node = element("p", "chips");
  for (const [name, count] of event.publishers.slice(0, 5)) node.append(element("span", "chip", count > 1 ? `${name} ${count}` : name));
  if (event.publishers.length > 5) node.append(element("span", "chip", `+${event.publishers.length - 5}`));
  for (const [name] of event.languages) node.append(element("span", "chip", name));
  return node;
}

// Views

function card(event) {
  const node = element("li", "card"), open = element("button", "open"), inside = element("div", "inside");
  open.type = "button";
  const title = element("h2", "", event.lead.title || event.lead.url);
  if (event.lead.language) title.lang = event.lead.language;
  title.dir = "auto";
  inside.append(title, element("div", "meta", `${counted(event.articles, "report", "reports")} by ${counted(event.publishers.length, "publisher", "publishers")} · ${range(event.first, event.last)}`));
  if (event.articles > 1) inside.append(timeline(event));
  inside.append(chips(event));
  if (event.image_url) open.append(picture(event.image_url));
  open.append(inside);
  open.addEventListener("click", () => go({ event: event.id, article: "" }));
  node.append(open);
  const others = event.reports.slice(1);
  if (others.length) {
    const list = element("ul", "others");
    for (const report of others) {
      const item = element("li");
      item.append(link(report), facts(report));
      list.append(item);
    }
    node.append(list);
  }
  return node;
}

async function showEvents(mine, offset = 0) {
  const body = await answer(`events?${parametersOfFilters()}&count=${PAGE}&offset=${offset}`, mine);
  if (mine !== turn) return;
  answered = body;
  let list = $("content").querySelector(".cards");
  if (!offset || !list) {
    list = element("ul", "cards");
    $("content").replaceChildren(list);
    shown = 0;
  }
  list.append(...body.events.map(card));
  shown += body.events.length;
  $("more").hidden = shown >= body.total;
  $("more").textContent = `More events (${(body.total - shown).toLocaleString("en")})`;
  showDays(body);
  if (body.total) say(`${counted(body.total, "event", "events")}, ${range(body.since || body.span[0], body.until || body.span[1])}; those that most publishers report come first`);
  else nothing(body);
}

function nothing(body) {
  say("");
  const node = element("div", "empty", "No articles of these days pass the filters.");
  if (body.span) {
    const back = element("button", "", `Show the last week, up to ${readable(body.span[1])}`);
    back.type = "button";
    back.addEventListener("click", () => go({ since: "", until: "", language: "", publisher: "" }));
    node.append(element("p", "", `The index has articles of ${range(...body.span)}.`), back);
  }
  $("content").replaceChildren(node);
}

function showDays(body) {
  if (!body.since || !body.until) return;
  $("since").value = body.since;
  $("until").value = body.until;
  const length = (dayOf(body.until) - dayOf(body.since)) / 864e5 + 1;
  for (const button of document.querySelectorAll("[data-length]")) button.setAttribute("aria-pressed", Number(button.dataset.length) === length);
  $("later").disabled = Boolean(body.span) && body.until >= body.span[1];
  $("earlier").disabled = Boolean(body.span) && body.since <= body.span[0];
}

function hit(result, mode) {
  const item = element("li");
  const score = element("div", "score", result.score.toFixed(3));
  if (mode !== "words") {  // BM25 has no upper end
    const bar = element("div", "bar"), fill = element("i");
    fill.style.width = `${Math.max(0, Math.min(1, result.score)) * 100}%`;
    bar.append(fill);
    score.append(bar);
  }
  const middle = element("div"), buttons = element("div", "buttons");
  middle.append(link(result, "title", result.title_marks), facts(result));
  if (result.extract_marks?.length) middle.append(marked(element("div", "extract"), result.extract, result.extract_marks));
  item.append(score, middle);
  if (result.url) {
    const event = element("button", "small", "same event"), like = element("button", "small", "more like this");
    event.type = like.type = "button";
    event.addEventListener("click", () => go({ article: result.url, event: "" }));
    like.addEventListener("click", () => { closePanel(); go({ view: "search", q: result.url, event: "", article: "" }); scrollTo({ top: 0 }); });
    buttons.append(event, like);
    item.append(buttons);
  }
  return item;
}

function hits(results, mode) {
  const list = element("ol", "hits");
  list.append(...results.map(result => hit(result, mode)));
  return list;
}

function noMatch(body) {  // the vectors always have nearest articles
  const node = element("div", "empty", "Nothing matches.");
  if (body.hits.length) {
    const button = element("button", "small", "Show the nearest articles");
    button.type = "button";
    button.addEventListener("click", () => node.replaceWith(hits(body.hits, body.mode)));
    node.append(" ", button);
  }
  return node;
}

async function showSearch(mine) {
  const text = $("query").value.trim();
  $("more").hidden = true;
  if (!text) {
    $("content").replaceChildren(element("div", "empty", "Type words, or the URL of an article of the index."));
    return say("");
  }
  const parameters = parametersOfFilters();
  parameters.set(isUrl(text) ? "url" : "q", text);
  parameters.set("count", $("count").value);
  if ($("mode").value && !isUrl(text)) parameters.set("mode", $("mode").value);
  say("searching …");
  const started = performance.now();
  const body = await answer(`search?${parameters}`, mine);
  if (mine !== turn) return;
  $("content").replaceChildren(body.matches ? hits(body.hits, body.mode) : noMatch(body));
  say([`${counted(body.matches ? body.hits.length : 0, "article", "articles")} in ${Math.round(performance.now() - started)} ms`, ...body.notes].join(" · "));
}

async function showMap(mine) {
  $("more").hidden = true;
  say("drawing …");
  const body = await answer(`map?${parametersOfFilters()}`, mine);
  if (mine !== turn) return;
  answered = body;
  showDays(body);
  if (!body.events.length) return nothing(body);
  const width = 1000, height = 640, edge = 50;
  const node = drawing("svg", { class: "map", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Events by topic" });
  const at = ([x, y]) => [edge + x * (width - 2 * edge), edge + y * (height - 2 * edge)];
  const centers = body.topics.map(() => [0, 0, 0]);
  for (const event of [...body.events].sort((one, two) => two.articles - one.articles)) {
    const [x, y] = at(event.place);
    const point = drawing("circle", { cx: x, cy: y, r: 4 + 3 * Math.sqrt(event.articles), fill: COLORS[event.topic % COLORS.length], tabindex: 0, role: "button" });
    point.append(drawing("title", {}));
    point.firstChild.textContent = `${event.title}\n${counted(event.articles, "report", "reports")} by ${counted(event.publishers, "publisher", "publishers")}`;
    point.setAttribute("aria-label", event.title);
    const open = () => go({ event: event.id, article: "" });
    point.addEventListener("click", open);
    point.addEventListener("keydown", key => { if (key.key === "Enter") { key.stopPropagation(); open(); } });
    node.append(point);
    const center = centers[event.topic];
    center[0] += x * event.articles; center[1] += y * event.articles; center[2] += event.articles;
  }
  const legend = element("ul", "legend");
  body.topics.forEach((label, topic) => {
    const [x, y, weight] = centers[topic];
    if (!label || !weight) return;
    const text = drawing("text", { x: x / weight, y: y / weight });
    text.textContent = label.split(" · ")[0];
    node.append(text);
    const item = element("li"), dot = element("i");
    dot.style.background = COLORS[topic % COLORS.length];
    item.append(dot, label);
    legend.append(item);
  });
  $("content").replaceChildren(node, legend);
  const part = body.events.length < body.total ? `the ${body.events.length} largest of ${body.total.toLocaleString("en")} events` : counted(body.total, "event", "events");
  say(`${part}${body.since ? `, ${range(body.since, body.until)}` : ""}; near events are similar, larger ones have more reports`);
}

// The panel: a whole event, or an article with the same event elsewhere

function report(item) {
  const node = element("li");
  node.append(link(item, "title"), facts(item));
  if (item.copies.length) {
    const copies = element("details"), list = element("ul");
    copies.append(element("summary", "", counted(item.copies.length, "near copy", "near copies")), list);
    for (const copy of item.copies) {
      const line = element("li");
      line.append(link(copy), facts(copy));
      list.append(line);
    }
    node.append(copies);
  }
  return node;
}

async function showPanel(state) {
  if (!state.event && !state.article) return closePanel();
  const mine = turn, content = $("panel-content");
  content.replaceChildren(element("p", "meta", "loading …"));
  if (!$("panel").open) $("panel").showModal();
  try {
    const body = await answer(`event?${new URLSearchParams(state.article ? { url: state.article } : { id: state.event })}`, mine);
    if (mine !== turn) return;
    const event = body.event, lead = body.article || event.lead, title = element("h2");
    title.id = "panel-title";
    title.append(link(lead));
    content.replaceChildren(title, facts(lead));
    if (event) {
      if (event.image_url) content.append(picture(event.image_url));
      content.append(element("h3", "", `${body.article ? "The same event: " : ""}${counted(event.articles, "report", "reports")} by ${counted(event.publishers.length, "publisher", "publishers")}, ${range(event.first, event.last)}`), chips(event));
      if (event.articles > 1) content.append(timeline(event));
      const list = element("ol", "reports");
      list.append(...event.reports.map(report));
      content.append(list);
    } else content.append(element("p", "meta", "The article has no byline date, so it is in no event."));
    if (body.similar.length) content.append(element("h3", "", "Similar articles of other events"), hits(body.similar, "vectors"));
  } catch (error) {
    if (mine !== turn) return;
    const title = element("h2", "", "Not shown");
    title.id = "panel-title";
    content.replaceChildren(title, element("p", "", error.message));
  }
}

function closePanel() {
  if ($("panel").open) $("panel").close();
}

// The address

function parametersOfFilters() {
  const parameters = new URLSearchParams();
  for (const name of FILTERS) if ($(name).value.trim()) parameters.set(name, $(name).value.trim());
  return parameters;
}

function state() {
  const parameters = new URLSearchParams(location.search), values = Object.fromEntries(parameters);
  values.q = values.q || values.url || "";
  if (!VIEWS.includes(values.view)) values.view = values.q ? "search" : "events";
  return values;
}

// Changes the address, and shows what it says now.
function go(changes, replace) {
  const next = { ...state(), ...changes };
  delete next.url;
  const parameters = new URLSearchParams(Object.entries(next).filter(([, value]) => value));
  const onlyPanel = Object.keys(changes).every(name => name === "event" || name === "article");
  history[replace ? "replaceState" : "pushState"](null, "", `?${parameters}`);
  if (onlyPanel) showPanel(next);
  else show();
}

async function show() {
  const now = state(), mine = ++turn;
  document.body.dataset.view = now.view;
  for (const tab of document.querySelectorAll("nav a")) tab.toggleAttribute("aria-current", tab.dataset.view === now.view);
  $("query").value = now.q;
  for (const name of [...FILTERS, "mode"]) $(name).value = now[name] || "";
  if ([...$("count").options].some(option => option.value === now.count)) $("count").value = now.count;
  try {
    await Promise.all([{ events: showEvents, search: showSearch, map: showMap }[now.view](mine), showPanel(now)]);
  } catch (error) {
    if (mine !== turn || !error.message) return;
    $("content").replaceChildren();
    $("more").hidden = true;
    say(error instanceof TypeError ? "The server does not answer. Is it running?" : error.message, true);
  }
}

function setDays(length, last) {
  const until = last || answered?.until || answered?.span?.[1] || $("until").value;
  if (until) go({ since: shifted(until, 1 - length), until });
}

function move(direction) {
  const [since, until] = [$("since").value, $("until").value];
  if (!since || !until) return;
  const length = Math.round((dayOf(until) - dayOf(since)) / 864e5) + 1;
  go({ since: shifted(since, direction * length), until: shifted(until, direction * length) });
}

function fromForm() {
  const changes = { q: $("query").value.trim(), mode: $("mode").value, count: $("count").value === "10" ? "" : $("count").value };
  for (const name of FILTERS) changes[name] = $(name).value.trim();
  go(changes);
}

// Keys

function choose(step) {
  const items = [...$("content").querySelectorAll(".card, .hits > li")];
  if (!items.length) return;
  const old = items.findIndex(item => item.classList.contains("chosen"));
  const next = Math.max(0, Math.min(items.length - 1, old + step));
  items[old]?.classList.remove("chosen");
  items[next].classList.add("chosen");
  const target = items[next].querySelector(".open, a");
  (target || items[next]).focus({ preventScroll: true });
  items[next].scrollIntoView({ block: "nearest" });
}

addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (document.querySelector("dialog[open]") && event.key !== "?") return;
  const action = {
    "1": () => go({ view: "events" }), "2": () => go({ view: "search" }), "3": () => go({ view: "map" }),
    "/": () => { if (state().view !== "search") go({ view: "search" }); $("query").focus(); },
    "j": () => choose(1), "k": () => choose(-1), "[": () => move(-1), "]": () => { if (!$("later").disabled) move(1); },
    "?": () => $("help").open ? $("help").close() : $("help").showModal(),
  }[event.key];
  if (action) { event.preventDefault(); action(); }
});

// Start

async function describe() {
  try {
    const found = await (await ask("healthz")).json();
    $("mode").hidden = Boolean(found.modes) && found.modes.length < 2;
    if (found.dimensions) $("facts").textContent = `${found.documents.toLocaleString("en")} articles · version ${found.version}`;
    else $("access").hidden = false;
  } catch { /* show() says it */ }
}

for (const tab of document.querySelectorAll("nav a")) tab.addEventListener("click", event => { event.preventDefault(); go({ view: tab.dataset.view }); });
for (const name of [...FILTERS, "mode", "count"]) $(name).addEventListener("change", fromForm);
for (const button of document.querySelectorAll("[data-length]")) button.addEventListener("click", () => setDays(Number(button.dataset.length)));
$("earlier").addEventListener("click", () => move(-1));
$("later").addEventListener("click", () => move(1));
$("more").addEventListener("click", () => { const mine = ++turn; showEvents(mine, shown).catch(error => say(error.message, true)); });
$("close").addEventListener("click", () => go({ event: "", article: "" }));
$("panel").addEventListener("cancel", event => { event.preventDefault(); go({ event: "", article: "" }); });
$("panel").addEventListener("click", event => { if (event.target === $("panel")) go({ event: "", article: "" }); });
$("form").addEventListener("submit", event => { event.preventDefault(); fromForm(); });
$("key").addEventListener("change", () => { sessionStorage.setItem("key", $("key").value.trim()); describe(); show(); });
addEventListener("popstate", show);
describe();
show();
