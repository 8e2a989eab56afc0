/*
 * The page's state, and what changes it. The address's fragment is the state as text: a link to it
 * shows the same again. update() is the only way to change it; it computes what depends on the
 * change and draws.
 */

const DEFAULTS = { by: "command", isIcicle: false, range: null, zoom: 0, search: "", theme: "", shown: 0 };

const app = { model: null, view: null, totals: [], matches: null, inside: null, focus: 0, hovered: NOTHING, state: { ...DEFAULTS } };
const part = (id) => document.getElementById(id);
const graph = new FlameGraph(part("flame"), part("sheet"), part("scroll"));
const heat = new HeatMap(part("heat"));
const darkness = matchMedia("(prefers-color-scheme: dark)");

function isDark() {
    return app.state.theme === "" ? darkness.matches : app.state.theme === "dark";
}

function shownRecording() {
    return app.model.recordings[app.state.shown];
}

function shownTotals() {
    return app.totals[app.state.shown];
}

/* The state as the fragment has it; what is as ever is not in it. */
function fragmentOf(state) {
    const fields = new URLSearchParams();
    const put = (name, value, isUsual) => isUsual || fields.set(name, value);
    put("by", state.by, state.by === DEFAULTS.by);
    put("view", "icicle", !state.isIcicle);
    put("range", state.range?.map((us) => us / 1e6).join("-"), !state.range);
    put("zoom", state.zoom, state.zoom === 0);
    put("search", state.search, state.search === "");
    put("theme", state.theme, state.theme === "");
    put("shown", state.shown, state.shown === DEFAULTS.shown);
    return fields.toString();
}

/* A range as the fragment has it, or null. */
function parseRange(text) {
    const numbers = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(text ?? "");
    const range = numbers?.slice(1).map((seconds) => Math.round(seconds * 1e6));
    return range && range[0] < range[1] ? range : null;
}

/* The state of a fragment; what makes no sense in it is as ever. */
function parseFragment(fragment) {
    const fields = new URLSearchParams(fragment.replace(/^#/, ""));
    const one = (name, allowed) => (allowed.includes(fields.get(name)) ? fields.get(name) : DEFAULTS[name]);
    return {
        by: one("by", [...part("by").options].map((option) => option.value)),
        isIcicle: fields.get("view") === "icicle",
        range: parseRange(fields.get("range")),
        zoom: /^\d+$/.test(fields.get("zoom") ?? "") ? Number(fields.get("zoom")) : 0,
        search: fields.get("search") ?? "",
        theme: one("theme", ["light", "dark"]),
        shown: Number(one("shown", app.model.recordings.map((recording, r) => String(r)))),
    };
}

/* A change that a person would take back is a step in the browser's history. */
function writeFragment(isStep) {
    const fragment = fragmentOf(app.state);
    if (fragment !== location.hash.replace(/^#/, "")) {
        const url = fragment === "" ? location.pathname + location.search : `#${fragment}`;
        history[isStep ? "pushState" : "replaceState"](null, "", url);
    }
}

/* Counts what depends on the range and on the first frames. */
function count(old) {
    const { model, state } = app;
    if (app.view === null || state.by !== old.by) {
        app.view = makeView(model, state.by);
        app.focus = 0;
    } else if (state.range === old.range && state.shown === old.shown) {
        return;
    }
    app.totals = model.recordings.map((recording, r) => countNodes(model, app.view, r, r === state.shown ? state.range : null));
    compare(app);
}

/* Finds what is below the zoom and what the search finds there, and counts the heat map anew. */
function match(old, isCounted) {
    const { model, view, state } = app;
    const isSame = state.zoom === old.zoom && state.search === old.search && state.by === old.by && state.shown === old.shown;
    if (isSame && isCounted && heat.counts) {
        return;
    }
    if (!isSame || !app.inside) {
        app.inside = markInside(view, state.zoom);
    }
    const test = makeTest(state.search);
    app.matches = test && search(model, view, shownTotals(), app.inside, test);
    if (!isSame || !heat.counts) {
        const isAll = state.zoom === 0 && app.matches === null;
        heat.part(shownRecording());
        heat.count(shownRecording(), view.stacks[state.shown], isAll ? null : app.matches?.under ?? app.inside);
    }
}

function update(changes, isStep = true) {
    const old = { ...app.state };
    Object.assign(app.state, changes);
    if (app.state.by !== old.by && changes.zoom === undefined) {
        app.state.zoom = 0;
    }
    count(old);
    const hasNothing = app.state.shown !== old.shown && shownTotals()[app.state.zoom] === 0;
    if (app.state.zoom >= app.view.count || hasNothing) {
        app.state.zoom = 0;
    }
    match(old, app.totals === app.matchedTotals);
    app.matchedTotals = app.totals;
    show(old);
    writeFragment(isStep);
}

/* Draws everything. */
function show(old) {
    const { state } = app;
    document.documentElement.dataset.theme = state.theme;
    graph.isIcicle = state.isIcicle;
    graph.layOut(app.model, app.view, shownTotals(), state.zoom);
    if (state.zoom !== old.zoom || !graph.isShown(app.focus)) {
        app.focus = state.zoom;
    }
    if (state.zoom !== old.zoom || state.isIcicle !== old.isIcicle || state.by !== old.by) {
        graph.revealRoot();
    }
    drawGraph();
    drawHeat();
    showTools();
    showDetails();
}

function textColour() {
    return isDark() ? "#f4f4f4" : "#111111";
}

function colourOf(node) {
    if (app.matches?.found[node]) {
        return foundColour(isDark());
    }
    if (app.changes) {
        return changeColour(app.changes.of(node), isDark());
    }
    return frameColour(describeNode(app.model, app.view, node), isDark());
}

function drawGraph() {
    graph.outlined = document.activeElement === part("flame") ? app.focus : app.hovered;
    graph.draw({
        colour: colourOf,
        name: (node) => describeNode(app.model, app.view, node).name,
        text: textColour(),
    });
}

function drawHeat(range = app.state.range) {
    heat.draw(range, isDark(), textColour());
    const slider = part("heat");
    const [from, to] = heat.rangeOf(heat.cursor, heat.cursor);
    slider.setAttribute("aria-valuemax", heat.cellCount - 1);
    slider.setAttribute("aria-valuenow", heat.cursor);
    slider.setAttribute("aria-valuetext", `${timeText(from)} to ${timeText(to)}, ${amountText(heat.counts[heat.cursor], shownRecording())}`);
}

function rangeText() {
    const { range } = app.state;
    const recording = shownRecording();
    const total = shownTotals()[0];
    const wholes = app.model.diff || app.model.is_switch ? "" : wholesText(app.model.recordings);
    return range ? `${timeText(range[0])} to ${timeText(range[1])}: ${amountText(total, recording)}, ${percentText(total, recording.total)} of the recording`
        : `The whole recording, ${amountText(total, recording)}; drag over a part of the heat map to select it${wholes === "" ? "" : `. Both: ${wholes}`}`;
}

function matchedText() {
    const { state, matches } = app;
    const totals = shownTotals();
    if (matches === null) {
        return state.search === "" ? "" : "no such expression";
    }
    return `${amountText(matches.samples, shownRecording())}, ${percentText(matches.samples, totals[state.zoom])} of the zoom, ${percentText(matches.samples, totals[0])} of the whole`;
}

function showTools() {
    const { state } = app;
    part("range_text").textContent = rangeText();
    part("cells").textContent = cellsText(heat, shownRecording());
    part("whole").disabled = !state.range;
    part("matched").textContent = matchedText();
    part("by").value = state.by;
    part("shown").value = String(state.shown);
    part("direction").setAttribute("aria-pressed", String(state.isIcicle));
    part("unzoom").disabled = state.zoom === 0;
    part("theme").textContent = isDark() ? "Light" : "Dark";
    if (document.activeElement !== part("search")) {
        part("search").value = state.search;
    }
    showLegend();
}

function showLegend() {
    const swatches = app.changes ? [["more", changeColour(1, isDark())], ["less", changeColour(-1, isDark())]]
        : KINDS.map((name, kind) => [name, frameColour({ kind, module: "", name: "" }, isDark())]);
    swatches.push(["found", foundColour(isDark())]);
    part("legend").replaceChildren(...swatches.map(([name, colour]) => {
        const item = document.createElement("span");
        const swatch = document.createElement("span");
        swatch.className = "swatch";
        swatch.style.backgroundColor = colour;
        item.append(swatch, name);
        return item;
    }), app.changes ? (app.model.diff ? "sure or not: the table says what is sure" : "")
        : "the shade depends on the module");
}

/* The numbers of a frame in words. */
function numbersText(node) {
    const { state, view } = app;
    const totals = shownTotals();
    const texts = [costText(totals[node], shownRecording()),
        `${percentText(totals[node], totals[state.zoom])} of the zoom`,
        `${percentText(totals[node], totals[0])} of the whole`,
        `${numberOnlyText(selfOf(view, totals, node), shownRecording())} in itself`];
    if (app.changes) {
        texts.push(app.changes.text(node));
    }
    return texts.join(" · ");
}

/* Says what is under the pointer, or else in the focus. */
function showDetails() {
    const node = app.hovered === NOTHING ? app.focus : app.hovered;
    const frame = describeNode(app.model, app.view, node);
    const name = document.createElement("strong");
    const place = placeText(frame);
    name.textContent = frame.name;
    part("details").replaceChildren(name, place === "" ? "" : ` (${place})`, document.createElement("br"), numbersText(node));
    showItem();
}

/* The frame in the focus, for users that do not see the canvas. */
function showItem() {
    const { view, focus } = app;
    const frame = describeNode(app.model, view, focus);
    const place = placeText(frame);
    const item = document.createElement("div");
    item.id = `frame_${focus}`;
    item.setAttribute("role", "treeitem");
    item.setAttribute("aria-selected", "true");
    item.setAttribute("aria-level", String(view.depths[focus] + 1));
    item.setAttribute("aria-expanded", String(graph.neighbour(focus, "called") !== NOTHING));
    item.setAttribute("aria-label", `${frame.name}${place === "" ? "" : `, ${place}`}: ${numbersText(focus)}`);
    part("flame").replaceChildren(item);
    part("flame").setAttribute("aria-activedescendant", item.id);
}

function say(text) {
    part("said").textContent = text;
}

function moveFocus(node) {
    if (node !== NOTHING) {
        app.focus = node;
        app.hovered = NOTHING;
        graph.reveal(app.view.depths[node]);
        drawGraph();
        showDetails();
    }
}

function zoomTo(node) {
    update({ zoom: node });
    say(`Zoom: ${numbersText(node)}`);
}

async function copyText() {
    const text = treeText(app);
    try {
        await navigator.clipboard.writeText(text);
        say("Copied");
    } catch {
        say("The browser does not let the page copy");
    }
    part("copy").textContent = part("said").textContent === "Copied" ? "Copied" : "Not copied";
    setTimeout(() => {
        part("copy").textContent = "Copy as text";
    }, 1500);
}

/* Takes back the last of zoom, search and range. */
function stepBack() {
    const { zoom, search: text, range } = app.state;
    if (zoom !== 0) {
        zoomTo(0);
    } else if (text !== "") {
        part("search").value = "";
        update({ search: "" });
    } else if (range) {
        update({ range: null });
    }
}

function onGraphKey(event) {
    const towardsCalled = app.state.isIcicle ? "ArrowDown" : "ArrowUp";
    const steps = { ArrowLeft: "left", ArrowRight: "right", [towardsCalled]: "called" };
    const { focus, view } = app;
    if (event.key === "Enter") {
        zoomTo(focus);
    } else if (event.key === "Backspace") {
        zoomTo(view.parents[app.state.zoom]);
    } else if (event.key.startsWith("Arrow")) {
        moveFocus(graph.neighbour(focus, steps[event.key] ?? "caller"));
    } else {
        return;
    }
    event.preventDefault();
}

/* The cell that a key leads to from the one at hand; NOTHING: it is no such key. */
function cellByKey(key) {
    const steps = { ArrowUp: 1, ArrowDown: -1, ArrowLeft: -heat.rows, ArrowRight: heat.rows, Home: -heat.cellCount, End: heat.cellCount };
    return steps[key] === undefined ? NOTHING : Math.min(Math.max(heat.cursor + steps[key], 0), heat.cellCount - 1);
}

function onHeatKey(event) {
    const cell = cellByKey(event.key);
    if (event.key === "Enter") {
        app.anchor = heat.cursor;
        selectCells(heat.cursor);
    } else if (cell !== NOTHING) {
        app.anchor = event.shiftKey ? app.anchor ?? heat.cursor : cell;
        heat.cursor = cell;
        if (event.shiftKey) {
            selectCells(cell);
        }
        drawHeat();
    } else {
        return;
    }
    event.preventDefault();
}

/* Selects the time from where the selection began to a cell. */
function selectCells(cell) {
    update({ range: heat.rangeOf(app.anchor, cell) });
    say(rangeText());
}

function onKey(event) {
    const isTyping = event.target === part("search");
    if (part("help").open || event.ctrlKey || event.altKey || event.metaKey) {
        return;
    }
    const actions = {
        "/": () => part("search").focus(),
        "i": () => update({ isIcicle: !app.state.isIcicle }, false),
        "c": copyText,
        "?": () => part("help").showModal(),
    };
    if (event.key === "Escape") {
        stepBack();
    } else if (!isTyping && event.target !== part("by") && actions[event.key]) {
        event.preventDefault();
        actions[event.key]();
    }
}

function listenToGraph() {
    const canvas = part("flame");
    canvas.addEventListener("keydown", onGraphKey);
    canvas.addEventListener("click", (event) => {
        const node = graph.nodeAt(event.offsetX, event.offsetY);
        if (node !== NOTHING) {
            zoomTo(node);
        }
    });
    canvas.addEventListener("pointermove", (event) => hover(graph.nodeAt(event.offsetX, event.offsetY)));
    canvas.addEventListener("pointerleave", () => hover(NOTHING));
    for (const kind of ["focus", "blur"]) {
        canvas.addEventListener(kind, drawGraph);
    }
    part("scroll").addEventListener("scroll", drawGraph);
}

function hover(node) {
    if (node !== app.hovered) {
        app.hovered = node;
        drawGraph();
        showDetails();
    }
}

function listenToHeat() {
    const canvas = part("heat");
    const cellOf = (event) => heat.cellOf(event.offsetX, event.offsetY);
    canvas.addEventListener("keydown", onHeatKey);
    canvas.addEventListener("pointerdown", (event) => {
        canvas.setPointerCapture(event.pointerId);
        heat.cursor = cellOf(event);
        app.anchor = event.shiftKey ? app.anchor ?? heat.cursor : heat.cursor;
        drawHeat(heat.rangeOf(app.anchor, heat.cursor));
    });
    canvas.addEventListener("pointermove", (event) => {
        if (canvas.hasPointerCapture(event.pointerId)) {
            heat.cursor = cellOf(event);
            drawHeat(heat.rangeOf(app.anchor, heat.cursor));
        }
    });
    canvas.addEventListener("pointerup", (event) => {
        heat.cursor = cellOf(event);
        selectCells(heat.cursor);
    });
    for (const kind of ["focus", "blur"]) {
        canvas.addEventListener(kind, () => drawHeat());
    }
}

function listenToTools() {
    part("tools").addEventListener("submit", (event) => event.preventDefault());
    part("by").addEventListener("change", () => update({ by: part("by").value }));
    part("shown").addEventListener("change", () => {
        const shown = Number(part("shown").value);
        update(app.model.is_switch ? { shown } : { shown, range: null });
    });
    part("search").addEventListener("input", () => {
        update({ search: part("search").value }, false);
        say(matchedText());
    });
    part("whole").addEventListener("click", () => update({ range: null }));
    part("unzoom").addEventListener("click", () => zoomTo(0));
    part("direction").addEventListener("click", () => update({ isIcicle: !app.state.isIcicle }, false));
    part("theme").addEventListener("click", () => update({ theme: isDark() ? "light" : "dark" }, false));
    part("copy").addEventListener("click", copyText);
    part("keys").addEventListener("click", () => part("help").showModal());
}

/* What an event of one recording is called where the page switches between them. */
function switchText(recording) {
    return recording.event === undefined ? "time running" : waitState(recording) ? `time ${waitState(recording)}` : shownText(recording.event);
}

/* What does not change. */
function showFacts() {
    const { recordings, is_switch: isSwitch } = app.model;
    const names = recordings.slice(0, isSwitch ? 1 : undefined).map((recording) => shownText(recording.name));
    document.title = `${names.join(" and ")} – flame graph`;
    part("title").textContent = names.join(" compared with ");
    part("facts").textContent = recordings.map((recording, r) => (
        `${isSwitch && r > 0 ? "" : originText(recording)}${factsText(recording)}`)).join("; ");
    part("warnings").replaceChildren(...allRemarks(recordings).map(({ text, isGrave }) => {
        const item = document.createElement("li");
        item.textContent = text;
        item.className = isGrave ? "" : "plain";
        return item;
    }));
    part("shown_label").hidden = recordings.length < 2;
    part("shown_text").textContent = isSwitch ? "Samples of" : "Widths of";
    part("shown").replaceChildren(...recordings.map((recording, r) => new Option(
        isSwitch ? switchText(recording) : recording.parts.length > 1 ? `${SIDES[r]}: ${names[r]}` : names[r], String(r))));
    if (app.model.diff) {
        showDifference(app.model.diff, part, update);
    }
}

async function start() {
    app.model = await unpack(part("data").textContent);
    part("data").remove();
    part("main").hidden = false;
    DEFAULTS.by = app.model.by;
    DEFAULTS.shown = app.model.is_switch ? 0 : app.model.recordings.length - 1;
    Object.assign(app.state, DEFAULTS);
    showFacts();
    update(parseFragment(location.hash), false);
    graph.revealRoot();
    listenToGraph();
    listenToHeat();
    listenToTools();
    document.addEventListener("keydown", onKey);
    darkness.addEventListener("change", () => show(app.state));
    addEventListener("popstate", () => update(parseFragment(location.hash), false));
    new ResizeObserver(() => {
        heat.counts = heat.width === part("heat").clientWidth ? heat.counts : null;
        update({}, false);
    }).observe(part("scroll"));
}

start().catch((error) => {
    part("facts").textContent = `This page cannot be read: ${error.message}`;
});
