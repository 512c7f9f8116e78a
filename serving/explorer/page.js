"use strict";
// The page's state is its address: ?view=events|search|map with days and filters, and the open event or article.
// No library, no build step: the server sends this file as it is.
const $ = id => document.getElementById(id);
const isUrl = text => /^https?:\/\/\S+$/.test(text);
const VIEWS = ["events", "search", "map"];
const FILTERS = ["since", "until", "language", "publisher"];
const PAGE = 40, RETRY_MS = 1500, NOTICE_MS = 5000, FACETS = 8, SPARK_DAYS = 3, MANY_MONTHS = 36, STREAM_BARS = 60;
const topicColor = (topic) => `var(--t${topic % 14})`;
const BANDS = { strong: "strong match: has nearly all words of the query", fair: "fair match: has half of the words, or means the same", weak: "weak match: has few of the words" };
let turn = 0;  // an answer that comes after a later question is dropped
let shown = 0;  // events on the page
let answered = null;  // the last answer about days
let only = "";  // the language of all articles of the last answer; only others are named

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

function element(tag, className, ...content) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  node.append(...content.filter(part => part !== undefined && part !== null && part !== ""));
  return node;
}

function button(className, text, action) {
  const node = element("button", className, text);
  node.type = "button";
  node.addEventListener("click", action);
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

const counted = (count, one, many) => `${count.toLocaleString()} ${count === 1 ? one : many}`;
const dayOf = text => new Date(`${text}T00:00:00Z`);
const shifted = (text, days) => new Date(dayOf(text).getTime() + days * 864e5).toISOString().slice(0, 10);
// In the form of the reader's language.
const days = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric", timeZone: "UTC" });
const readable = text => days.format(dayOf(text));
const shortDay = text => dayOf(text).toLocaleDateString(undefined, { day: "numeric", month: "short", timeZone: "UTC" });
const range = (first, last) => first === last ? readable(first) : days.formatRange(dayOf(first), dayOf(last));
const languageName = tag => { try { return new Intl.DisplayNames(undefined, { type: "language" }).of(tag); } catch { return tag; } };

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

function inLanguage(node, article) {
  if (article.language) node.lang = article.language;
  node.dir = "auto";
  return node;
}

function link(article, className, places) {
  const node = marked(element(isUrl(article.url) ? "a" : "span", className), article.title || article.url || article.doc_id, article.title ? places : []);
  if (isUrl(article.url)) Object.assign(node, { href: article.url, target: "_blank", rel: "noopener noreferrer" });
  return inLanguage(node, article);
}

const isUsual = tag => !tag || tag === only;
const facts = article => element("span", "meta", [article.publisher, article.byline_date && readable(article.byline_date), !isUsual(article.language) && languageName(article.language)].filter(Boolean).join(" · "));

function picture(url) {
  const node = element("img", "picture");
  Object.assign(node, { src: url, alt: "", loading: "lazy", decoding: "async", referrerPolicy: "no-referrer" });
  node.addEventListener("error", () => node.remove());
  return node;
}

// Reports a day, between the first and the last day; a few days need no picture.
function spark(event) {
  const length = Math.round((dayOf(event.last) - dayOf(event.first)) / 864e5) + 1;
  if (length < SPARK_DAYS || event.timeline.length < 2) return "";
  const most = Math.max(...event.timeline.map(([, count]) => count));
  const node = drawing("svg", { viewBox: `0 0 ${length * 10} 20`, preserveAspectRatio: "none", role: "img" });
  node.append(drawing("line", { x1: 0, x2: length * 10, y1: 20, y2: 20 }));
  for (const [day, count] of event.timeline) {
    const height = 18 * count / most, x = Math.round((dayOf(day) - dayOf(event.first)) / 864e5) * 10;
    const bar = drawing("rect", { x: x + 1, y: 20 - height, width: 8, height }), title = drawing("title", {});
    title.textContent = `${readable(day)}: ${counted(count, "report", "reports")}`;
    bar.append(title);
    node.append(bar);
  }
  node.setAttribute("aria-label", `${counted(event.articles, "report", "reports")}, ${range(event.first, event.last)}`);
  node.style.maxWidth = `${length}rem`;  // a few days are a few bars, not a wall
  return element("span", "spark", shortDay(event.first), node, shortDay(event.last));
}

// What an editor asks about an event: how large, in which languages, how new, who was first, and how it grows. On a card
// each is one line, so that cards are level.
function foot(event, isWhole) {
  const node = element("span", "foot meta"), [, lastCount] = event.timeline.at(-1);
  const languages = event.languages.length > 1 ? ` · ${event.languages.map(([name]) => languageName(name)).join(", ")}` : "";
  const line = (...content) => { const one = element("span", "one", ...content); one.title = one.textContent; node.append(one); };
  line(element("b", "", counted(event.articles, "report", "reports")), ` · ${counted(event.publishers.length, "publisher", "publishers")}${languages}`);
  const grows = isWhole && event.timeline.length > 1 ? ` · ${lastCount.toLocaleString()} on the last day` : "";
  line(`${range(event.first, event.last)}${grows}${event.first_by ? ` · first: ${event.first_by}` : ""}`);
  node.append(spark(event));
  return node;
}

// Today

function opened(event, ...content) {
  const node = button("open", "", () => go({ event: event.id, article: "" }));
  node.append(...content);
  return node;
}

const heading = event => inLanguage(element("h2", "", event.lead.title || event.lead.url), event.lead);

function card(event, isLead) {
  const inside = element("div", "inside", heading(event), event.summary ? inLanguage(element("p", "summary", event.summary), event.lead) : "", foot(event, isLead));
  return element("li", isLead ? "card lead" : "card", opened(event, ...(event.image_url ? [picture(event.image_url)] : []), inside));
}

function brief(event) {
  const title = inLanguage(element("span", "", event.lead.title || event.lead.url), event.lead);
  return element("li", "brief", opened(event, title, facts(event.lead)));
}

function skeleton() {
  const list = element("ul", "cards");
  for (let place = 0; place < 7; place++) list.append(element("li", place ? "card waiting" : "card lead waiting"));
  $("content").replaceChildren(list);
}

async function showEvents(mine, offset = 0) {
  if (!offset && !$("content").querySelector(".cards")) skeleton();
  const body = await answer(`events?${parametersOfFilters()}&count=${PAGE}&offset=${offset}`, mine);
  if (mine !== turn) return;
  answered = body;
  alike(body.events.flatMap(event => event.languages.map(([name]) => name)));
  if (!offset) {
    $("content").replaceChildren(element("ul", "cards"), element("h3", "", "One report each"), element("ul", "briefs"));
    shown = 0;
  }
  const [cards, title, briefs] = $("content").children, several = body.events.filter(event => event.articles > 1);
  cards.append(...several.map((event, place) => card(event, !offset && !place)));
  briefs.append(...body.events.filter(event => event.articles === 1).map(brief));
  title.hidden = !briefs.childElementCount;
  shown += body.events.length;
  $("more").hidden = shown >= body.total;
  $("more").textContent = `More events (${(body.total - shown).toLocaleString()})`;
  showDays(body);
  suggest("publishers", body.events.flatMap(event => event.publishers.map(([name]) => name)));
  suggest("languages", body.events.flatMap(event => event.languages.map(([name]) => name)));
  if (body.total) say(`${counted(body.total, "event", "events")}, ${range(body.since || body.span[0], body.until || body.span[1])}; those that most publishers report come first`);
  else nothing(body);
}

// Where all articles are in one language, it need not be said with each.
function alike(languages) {
  only = new Set(languages).size === 1 ? languages[0] : "";
}

function suggest(id, names) {
  $(id).replaceChildren(...[...new Set(names)].sort().map(name => Object.assign(element("option"), { value: name })));
}

function nothing(body) {
  say("");
  const node = element("div", "empty", "No articles of these days pass the filters.");
  if (body.span) {
    const back = button("", `Show the latest events, up to ${readable(body.span[1])}`, () => go({ since: "", until: "", language: "", publisher: "" }));
    node.append(element("p", "", `The archive has articles of ${range(...body.span)}.`), back);
  }
  $("content").replaceChildren(node);
}

function showDays(body) {
  if (!body.since || !body.until) return;
  $("since").value = body.since;
  $("until").value = body.until;
  const length = (dayOf(body.until) - dayOf(body.since)) / 864e5 + 1;
  for (const node of document.querySelectorAll("[data-length]")) node.setAttribute("aria-pressed", Number(node.dataset.length) === length);
  $("later").disabled = Boolean(body.span) && body.until >= body.span[1];
  $("earlier").disabled = Boolean(body.span) && body.since <= body.span[0];
}

// Search

function hit(result) {
  const line = element("div", "line", facts(result));
  if (result.band) {
    const band = element("span", `band ${result.band}`, result.band);
    band.title = BANDS[result.band];
    line.append(band);
  }
  if (result.url) line.append(button("link", "same event", () => go({ article: result.url, event: "" })), button("link", "more like this", () => { closePanel(); go({ view: "search", q: result.url, event: "", article: "" }); scrollTo({ top: 0 }); }));
  const item = element("li", "", link(result, "title", result.title_marks), line);
  if (result.extract_marks?.length) item.append(inLanguage(marked(element("div", "extract"), result.extract, result.extract_marks), result));
  return item;
}

// Results in their order; further reports of an event, and articles that come again each year, are under the first one.
function hits(results) {
  const list = element("ol", "hits"), first = new Map();
  for (const result of results) {
    const item = hit(result), keys = [result.event_id && `event ${result.event_id}`, result.title && `title ${result.title.toLowerCase()}`].filter(Boolean);
    const owner = first.get(keys.find(key => first.has(key)));
    for (const key of keys) if (!first.has(key)) first.set(key, owner || item);
    if (!owner) {
      list.append(item);
      continue;
    }
    if (!owner.querySelector("details")) owner.append(element("details", "", element("summary"), element("ul")));
    const more = owner.querySelector("details ul");
    more.append(element("li", "", link(result), " ", facts(result)));
    owner.querySelector("summary").textContent = `${counted(more.childElementCount, "more article", "more articles")} of this event or title`;
  }
  return list;
}

function facetList(title, counts, name, label = value => value) {
  if (counts.length < 2 && !$(name).value) return [];
  const list = element("ul");
  for (const [value, count] of counts.slice(0, FACETS)) {
    const item = button("", "", () => go({ [name]: value }));
    item.append(element("span", "", label(value)), element("span", "meta", count.toLocaleString()));
    list.append(element("li", "", item));
  }
  return [element("h3", "", title), list];
}

const afterMonth = month => shifted(`${month}-28`, 7).slice(0, 7);

// Bars of months, or of years where there are many.
function times(counts) {
  if (counts.length < 2) return [];
  const index = month => 12 * Number(month.slice(0, 4)) + Number(month.slice(5));
  const isLong = index(counts.at(-1)[0]) - index(counts[0][0]) >= MANY_MONTHS, known = new Map();
  for (const [month, count] of counts) {
    const name = isLong ? month.slice(0, 4) : month;
    known.set(name, (known.get(name) || 0) + count);
  }
  const most = Math.max(...known.values()), list = element("ul", "months"), [first, last] = [[...known.keys()][0], [...known.keys()].at(-1)];
  for (let name = first; name <= last; name = isLong ? String(Number(name) + 1) : afterMonth(name)) {
    const count = known.get(name) || 0, [start, end] = isLong ? [`${name}-01-01`, `${name}-12-31`] : [`${name}-01`, shifted(`${afterMonth(name)}-01`, -1)];
    const bar = button("", "", () => go({ since: start, until: end }));
    bar.style.height = `${100 * count / most}%`;
    bar.title = `${name}: ${counted(count, "article", "articles")}`;
    bar.setAttribute("aria-label", bar.title);
    list.append(element("li", "", bar));
  }
  return [element("h3", "", "Time"), list, element("div", "ends", element("span", "", first), element("span", "", last))];
}

function facets(body, parameters) {
  const { publisher = [], language = [], month = [] } = body.facets;
  const node = element("aside", "facets", ...times(month), ...facetList("Publishers", publisher, "publisher"), ...facetList("Languages", language, "language", languageName));
  suggest("publishers", publisher.map(([name]) => name));
  suggest("languages", language.map(([name]) => name));
  const feed = kind => Object.assign(element("a", "", kind === "atom" ? "Atom" : "JSON"), { href: `feed.${kind}?${parameters}` });
  node.append(element("p", "subscribe", "Subscribe to this search: ", feed("atom"), " · ", feed("json")));
  return node;
}

function noMatch(body) {  // the vectors always have nearest articles
  const node = element("div", "empty", "Nothing matches.");
  if (body.hits.length) node.append(" ", button("", "Show the nearest articles", () => node.replaceWith(hits(body.hits))));
  return node;
}

async function showSearch(mine) {
  const text = $("query").value.trim();
  $("more").hidden = true;
  if (!text) {
    $("content").replaceChildren(element("div", "empty", "Type words, or the URL of an article of the archive."));
    return say("");
  }
  const parameters = parametersOfFilters();
  parameters.set(isUrl(text) ? "url" : "q", text);
  parameters.set("count", $("count").value);
  if ($("mode").value && !isUrl(text)) parameters.set("mode", $("mode").value);
  say("searching …");
  const started = performance.now();
  const body = await answer(`search?${parameters}&facets=true`, mine);
  if (mine !== turn) return;
  alike(body.hits.map(result => result.language));
  const strong = body.hits.filter(result => result.band !== "weak").length;
  const none = body.hits.length && body.hits.every(result => result.band === "weak");
  $("content").replaceChildren(element("div", "found", facets(body, parameters), body.matches && body.hits.length ? hits(body.hits) : noMatch(body)));
  const told = body.matches ? counted(strong || body.hits.length, "article", "articles") : "no article";
  const honest = none ? ["no article has most of these words; the nearest ones are shown"] : [];
  say([`${told} in ${Math.round(performance.now() - started)} ms`, ...honest, ...body.notes].join(" · "));
}

// Map

async function showMap(mine) {
  $("more").hidden = true;
  say("drawing …");
  const body = await answer(`map?${parametersOfFilters()}`, mine);
  if (mine !== turn) return;
  answered = body;
  showDays(body);
  if (!body.events.length) return nothing(body);
  const isNarrow = innerWidth < 600, width = isNarrow ? 420 : 1100, height = isNarrow ? 560 : 640, edge = isNarrow ? 30 : 60;
  const node = drawing("svg", { class: "map", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": "Events by topic" });
  const at = ([x, y]) => [edge + x * (width - 2 * edge), edge + y * (height - 2 * edge)];
  const centers = body.topics.map(() => [0, 0, 0, 0]);
  for (const event of [...body.events].sort((one, two) => two.articles - one.articles)) {
    const [x, y] = at(event.place);
    const point = drawing("circle", { cx: x, cy: y, r: 4 + 3 * Math.sqrt(event.articles), tabindex: 0, role: "button", "data-topic": event.topic });
    point.style.fill = topicColor(event.topic);
    const title = drawing("title", {});
    title.textContent = `${event.title}\n${counted(event.articles, "report", "reports")} by ${counted(event.publishers, "publisher", "publishers")}`;
    point.append(title);
    point.setAttribute("aria-label", event.title);
    const open = () => go({ event: event.id, article: "" });
    point.addEventListener("click", open);
    point.addEventListener("keydown", key => { if (key.key === "Enter") { key.stopPropagation(); open(); } });
    node.append(point);
    const center = centers[event.topic];
    center[0] += x; center[1] += y; center[2] += 1; center[3] += event.articles;
  }
  const legend = element("ul", "legend"), placed = [], named = new Set();
  const order = body.topics.map((label, topic) => [label, topic]).filter(([label, topic]) => label && centers[topic][2]).sort(([, one], [, two]) => centers[two][3] - centers[one][3]);
  for (const [label, topic] of order) {
    const [x, y, count, articles] = centers[topic], parts = label.split(" · ");
    const name = parts.find(part => !named.has(part)) || parts[0], half = name.length * 4.2;
    named.add(name);
    const [left, top] = [Math.min(width - half - 4, Math.max(half + 4, x / count)), y / count];
    // A label that would cover another one is in the legend only.
    if (placed.every(([other, line, wide]) => Math.abs(other - left) > wide + half || Math.abs(line - top) > 18)) {
      const text = drawing("text", { x: left, y: top });
      text.textContent = name;
      node.append(text);
      placed.push([left, top, half]);
    }
    const item = button("", "", () => choose(item, topic)), dot = element("i");
    dot.style.background = topicColor(topic);
    item.append(dot, `${label} (${articles.toLocaleString()})`);
    item.setAttribute("aria-pressed", false);
    legend.append(element("li", "", item));
  }
  // The events of one topic, or of all again.
  const choose = (chosen, topic) => {
    const isOn = chosen.getAttribute("aria-pressed") !== "true";
    for (const item of legend.querySelectorAll("button")) item.setAttribute("aria-pressed", isOn && item === chosen);
    for (const mark of $("content").querySelectorAll("[data-topic]")) mark.classList.toggle("dim", isOn && Number(mark.dataset.topic) !== topic);
  };
  $("content").replaceChildren(node, legend, ...stream(body.events));
  const part = body.events.length < body.total ? `the ${body.events.length} largest of ${body.total.toLocaleString()} events` : counted(body.total, "event", "events");
  say(`${part}${body.since ? `, ${range(body.since, body.until)}` : ""}; near events are similar, larger ones have more reports`);
}

// How many reports the events of each topic have, by the days on which they began; one bar may be several days.
function stream(events) {
  const first = events.map(event => event.first).sort()[0], last = events.map(event => event.first).sort().at(-1);
  const length = (dayOf(last) - dayOf(first)) / 864e5 + 1, each = Math.ceil(length / STREAM_BARS), bars = Math.ceil(length / each);
  if (bars < SPARK_DAYS) return [];
  const sums = Array.from({ length: bars }, () => new Map());
  for (const event of events) {
    const bar = sums[Math.floor((dayOf(event.first) - dayOf(first)) / 864e5 / each)];
    bar.set(event.topic, (bar.get(event.topic) || 0) + event.articles);
  }
  const total = bar => [...bar.values()].reduce((sum, count) => sum + count, 0), most = Math.max(...sums.map(total));
  const node = drawing("svg", { class: "stream", viewBox: `0 0 ${bars * 10} 100`, preserveAspectRatio: "none", role: "img", "aria-label": "Reports by topic and day" });
  sums.forEach((bar, place) => {
    let top = 100;
    for (const [topic, count] of [...bar].sort(([one], [two]) => one - two)) {
      const height = 100 * count / most;
      top -= height;
      const part = drawing("rect", { x: place * 10 + .5, y: top, width: 9, height, "data-topic": topic });
      part.style.fill = topicColor(topic);
      node.append(part);
    }
  });
  const title = each > 1 ? `Reports of topics, each bar ${each} days` : "Reports of topics by day";
  return [element("h3", "", title), node, element("div", "ends", element("span", "", readable(first)), element("span", "", readable(last)))];
}

// The panel: a whole event, or an article with the same event elsewhere

function report(item) {
  const node = element("li", "", facts(item), element("br"), link(item, "title"));
  if (item.adds.length) node.append(element("ul", "adds", ...item.adds.map(text => inLanguage(element("li", "", text), item))));
  else if (item.summary) node.append(inLanguage(element("p", "summary", item.summary), item));
  if (item.copies.length) {
    const list = element("ul", "", ...item.copies.map(copy => element("li", "", link(copy), " ", facts(copy))));
    node.append(element("details", "", element("summary", "", counted(item.copies.length, "near copy", "near copies")), list));
  }
  return node;
}

function story(title, events) {
  if (!events.length) return [];
  const items = events.map(event => element("li", "", button("link", event.lead.title || event.id, () => go({ event: event.id, article: "" })), " ", element("span", "meta", `${readable(event.first)} · ${counted(event.articles, "report", "reports")}`)));
  return [element("h3", "", title), element("ul", "story", ...items)];
}

async function showPanel(state) {
  if (!state.event && !state.article) return closePanel();
  const mine = turn, content = $("panel-content");
  content.replaceChildren(element("p", "meta", "loading …"));
  if (!$("panel").open) $("panel").showModal();
  try {
    const body = await answer(`event?${new URLSearchParams(state.article ? { url: state.article } : { id: state.event })}`, mine);
    if (mine !== turn) return;
    const event = body.event, lead = body.article || event.lead, title = element("h2", "", link(lead));
    title.id = "panel-title";
    content.replaceChildren(title, facts(lead));
    if (event) {
      if (event.image_url) content.append(picture(event.image_url));
      content.append(foot(event, true));
      if (event.silent.length) content.append(element("p", "meta", `No report yet by: ${event.silent.join(", ")}`));
      if (event.names.length) content.append(element("p", "chips", ...event.names.map(name => button("chip", name, () => { closePanel(); go({ view: "search", q: name, event: "", article: "" }); }))));
      content.append(element("h3", "", body.article ? "The same event" : "Reports, and what each adds"), element("ol", "reports", ...event.reports.map(report)));
    } else content.append(element("p", "meta", "The article has no byline date, so it is in no event."));
    content.append(...story("Before", body.before), ...story("After", body.after));
    if (body.similar.length) content.append(element("h3", "", "Similar articles of other events"), hits(body.similar));
    $("panel").scrollTo({ top: 0 });
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

// Each filter of the address, with a way to take it back.
function showActive(now) {
  const labels = { since: `from ${now.since && readable(now.since)}`, until: `to ${now.until && readable(now.until)}`, language: now.language && languageName(now.language), publisher: now.publisher };
  const names = FILTERS.filter(name => now[name] && (now.view === "search" || !/^(since|until)$/.test(name)));
  $("active").hidden = !names.length;
  $("fold").textContent = names.length ? `Filters (${names.length})` : "Filters";
  $("active").replaceChildren(...names.map(name => {
    const node = button("", `${labels[name]} ×`, () => go({ [name]: "" }));
    node.setAttribute("aria-label", `Remove the filter ${labels[name]}`);
    return element("li", "", node);
  }));
}

async function show() {
  const now = state(), mine = ++turn;
  document.body.dataset.view = now.view;
  for (const tab of document.querySelectorAll("nav a")) tab.toggleAttribute("aria-current", tab.dataset.view === now.view);
  $("query").value = now.q;
  for (const name of [...FILTERS, "mode"]) $(name).value = now[name] || "";
  if ([...$("count").options].some(option => option.value === now.count)) $("count").value = now.count;
  showActive(now);
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
  const changes = { q: $("query").value.trim(), mode: $("mode").value, count: $("count").value === "25" ? "" : $("count").value };
  for (const name of FILTERS) changes[name] = $(name).value.trim();
  go(changes);
}

// Keys

function choose(step) {
  const items = [...$("content").querySelectorAll(".card, .brief, .hits > li")];
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
    if (found.dimensions) $("facts").textContent = counted(found.documents, "article", "articles");
    else $("access").hidden = false;
    if (!found.notice && !$("notice").hidden) show();  // what it told of is there
    $("notice").hidden = !found.notice;
    $("notice").textContent = found.notice || "";
    if (found.notice) setTimeout(describe, NOTICE_MS);
  } catch { /* show() says it */ }
}

$("fold").addEventListener("click", () => $("fold").setAttribute("aria-expanded", $("filters").classList.toggle("open")));

async function share() {
  await navigator.clipboard?.writeText(location.href);
  $("share").textContent = "Copied";
  setTimeout(() => { $("share").textContent = "Copy link"; }, RETRY_MS);
}

for (const tab of document.querySelectorAll("nav a")) tab.addEventListener("click", event => { event.preventDefault(); go({ view: tab.dataset.view }); });
for (const name of [...FILTERS, "mode", "count"]) $(name).addEventListener("change", fromForm);
for (const node of document.querySelectorAll("[data-length]")) node.addEventListener("click", () => setDays(Number(node.dataset.length)));
$("earlier").addEventListener("click", () => move(-1));
$("later").addEventListener("click", () => move(1));
$("more").addEventListener("click", () => { const mine = ++turn; showEvents(mine, shown).catch(error => say(error.message, true)); });
$("share").addEventListener("click", share);
$("close").addEventListener("click", () => go({ event: "", article: "" }));
$("panel").addEventListener("cancel", event => { event.preventDefault(); go({ event: "", article: "" }); });
$("panel").addEventListener("click", event => { if (event.target === $("panel")) go({ event: "", article: "" }); });
$("form").addEventListener("submit", event => { event.preventDefault(); fromForm(); });
$("key").addEventListener("change", () => { sessionStorage.setItem("key", $("key").value.trim()); describe(); show(); });
addEventListener("popstate", show);
describe();
show();
