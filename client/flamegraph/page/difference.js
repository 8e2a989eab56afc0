/*
 * What changed from one side to the other: the colours and texts of the graph's frames, and the table
 * of `profctl diff` where the page has its result. All numbers of the table, and the unit of the graph's,
 * are of that result; the page computes none of its own.
 */

const WORK_UNITS = [[1, "s"], [1e3, "ms"], [1e6, "us"], [1e9, "ns"]];
const PER_WORDS = { time: "of the CPUs' time", cpu: "of the CPU time compared", work: "for a unit of work" };
const PER_WORDS_OF_EVENTS = { time: "a second", cpu: "of all that is compared", work: "for a unit of work" };
const SIDES = ["before", "after"];
/* How rows are found in the graph: by a first frame, or by the name of a function. */
const FIRST_FRAMES = { function: null, stack: null, command: "command", unit: "unit", thread: "thread" };

/* A term of a recording's books; 0: they do not say. */
function ticksOf(recording, term) {
    const ticks = recording.books?.total?.[term];
    return typeof ticks === "number" ? ticks : 0;
}

/* The ticks that a recording of a whole machine has seen, of all that there were; 0: it does not say,
 * or is of a part of the machine, whose CPU time is compared as it is in `profctl diff`. */
function seenTicks(recording) {
    const lost = LOSSES.reduce((sum, term) => sum + ticksOf(recording, term), 0);
    return recording.is_whole && recording.unselected === 0 && recording.event === undefined ? Math.max(ticksOf(recording, "expected") - lost, 0) : 0;
}

/* What the result's numbers are shown in: { scale, name }. */
function unitOf(result) {
    if (result.unit === "percent") {
        return { scale: 1, name: "%" };
    }
    if (result.unit !== "seconds") {
        return { scale: 1, name: shownText(result.unit) };
    }
    const whole = Math.max(...SIDES.map((side) => result[side].whole));
    const [scale, name] = WORK_UNITS.find(([factor]) => whole * factor >= 1) ?? WORK_UNITS[WORK_UNITS.length - 1];
    return { scale, name };
}

/* What a sample of each side counts: { scales, text }, where the text is of a number of the scale. By
 * the result; without one, or in a range, by the part of the ticks or of the samples. */
function chooseScale(app) {
    const { model, state, totals } = app;
    if (model.diff && !state.range) {
        const { result } = model.diff;
        const unit = unitOf(result);
        return {
            scales: SIDES.map((side, s) => result[side].whole / model.recordings[s].total),
            text: (value) => `${(value * unit.scale).toFixed(2)} ${unit.name}`,
            words: (result.event === undefined ? PER_WORDS : PER_WORDS_OF_EVENTS)[result.per],
        };
    }
    const seen = model.recordings.map(seenTicks);
    const isByTicks = !state.range && seen.every((ticks) => ticks > 0);
    return {
        scales: isByTicks ? seen.map((ticks) => 1 / ticks) : totals.map((counts) => 1 / Math.max(counts[0], 1)),
        text: (value) => percentText(value, 1),
        words: isByTicks ? PER_WORDS.time
            : state.range || model.recordings[0].event !== undefined ? `of the ${wholeText(model.recordings[0])}` : PER_WORDS.cpu,
    };
}

/* "1.6 → 2.05 CPU-seconds (+28 %)": all that two recordings have; "" where that is not known. */
function wholesText(recordings) {
    if (recordings.length < 2 || recordings.some(({ period_ns: period, sampleCount, event }) => period === 0 || sampleCount === 0 || event !== undefined)) {
        return "";
    }
    const [before, after] = recordings.map((recording) => (recording.sampleCount * recording.period_ns) / 1e9);
    const change = Math.round(100 * (after / before - 1));
    return `${+before.toPrecision(3)} → ${+after.toPrecision(3)} CPU-seconds (${change < 0 ? "−" : "+"}${Math.abs(change)} %)`;
}

/* What has changed below each node. */
function compare(app) {
    if (app.model.recordings.length < 2 || app.model.is_switch) {
        return;
    }
    const { scales, text, words } = chooseScale(app);
    const [before, after] = app.totals;
    const changeOf = (node) => after[node] * scales[1] - before[node] * scales[0];
    let most = 0;
    for (let node = 1; node < app.view.count; node++) {
        most = Math.max(most, Math.abs(changeOf(node)));
    }
    app.changes = {
        of: (node) => (most > 0 ? Math.min(Math.max(changeOf(node) / most, -1), 1) : 0),
        text: (node) => `${text(before[node] * scales[0])} → ${text(after[node] * scales[1])} ${words}`,
    };
}

/* Lines as paragraphs; what is to be typed begins with spaces, and what is an item of a list with a
 * line. */
function linesOf(text) {
    return text.split("\n").filter((line) => line !== "").map((line) => {
        const isTyped = line.startsWith("  ");
        const element = document.createElement(isTyped ? "code" : "p");
        element.textContent = shownText(isTyped ? line.trimStart() : line);
        return element;
    });
}

function numberText(value, unit) {
    return (value * unit.scale).toFixed(2);
}

/* A change with the half of its interval. */
function changeText(change, unit) {
    const value = change.change * unit.scale;
    const margin = change.margin === null ? "" : ` ± ${numberText(change.margin, unit)}`;
    return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(2)}${margin}`;
}

/* What is to be said of a row beside its numbers. */
function remarkOf(row) {
    const remarks = [];
    if (row.self.sure || row.total.sure) {
        remarks.push(row.self.sure && row.total.sure ? "sure" : row.self.sure ? "self is sure" : "total is sure");
    }
    if (row.total.samples_before === 0) {
        remarks.push("new");
    }
    if (row.total.samples_after === 0) {
        remarks.push("vanished");
    }
    if (row.unmatched) {
        remarks.push("of another build");
    }
    return remarks.join(", ");
}

/* What the search of a row is; null: the graph has no such frames. */
function searchOf(row, by) {
    const frame = FIRST_FRAMES[by];
    if (frame === undefined) {
        return null;
    }
    return { search: frame === "thread" ? row.name : exactly(row.name), ...(frame === null ? {} : { by: frame }) };
}

function cellOf(text, className) {
    const cell = document.createElement("td");
    cell.textContent = text;
    cell.className = className;
    return cell;
}

function spanOf(text, className) {
    const span = document.createElement("span");
    span.textContent = text;
    span.className = className;
    return span;
}

function nameCell(row, by, onSearch) {
    const cell = document.createElement("th");
    const changes = searchOf(row, by);
    const name = document.createElement(changes ? "button" : "span");
    const module = spanOf(shownText(row.module === null ? "" : row.module.slice(row.module.lastIndexOf("/") + 1)), "module");
    cell.scope = "row";
    name.textContent = shownText(row.stack ? row.stack.join(" > ") : row.name);
    if (changes) {
        name.type = "button";
        name.title = "Search it in the graph";
        name.addEventListener("click", () => onSearch(changes));
    }
    module.title = shownText(row.module ?? "");
    cell.append(name, " ", module);
    const remark = remarkOf(row);
    if (remark !== "") {
        cell.append(" ", spanOf(remark, "remark"));
    }
    return cell;
}

/* The class of a change: only what is sure has a colour. */
function classOf(change) {
    return !change.sure ? "number" : change.change > 0 ? "number grew" : "number shrank";
}

function makeRow(row, result, unit, onSearch) {
    const line = document.createElement("tr");
    const [first, second] = result.sort === "total" ? [row.total, row.self] : [row.self, row.total];
    const valueOf = (side) => (first[`samples_${side}`] === 0 ? "–" : numberText(first[side], unit));
    const isNoise = (change) => (result.judged ? !change.sure : change.margin === null || Math.abs(change.change) <= change.margin);
    line.className = isNoise(first) && isNoise(second) ? "noise" : "";
    line.append(nameCell(row, result.by, onSearch), ...SIDES.map((side) => cellOf(valueOf(side), "number")),
        cellOf(changeText(first, unit), classOf(first)));
    if (result.judged) {
        line.append(cellOf(first.visible === null ? "–" : numberText(first.visible, unit), "number"));
    }
    line.append(cellOf(changeText(second, unit), classOf(second)));
    return line;
}

function makeTitles(result, unit) {
    const line = document.createElement("tr");
    const within = result.judged ? "± 95 %" : "± within";
    const [first, second] = result.sort === "total" ? ["total", "self"] : ["self", "total"];
    const titles = [result.by, `before, ${unit.name}`, `after, ${unit.name}`, `${first} ${within}`,
        ...(result.judged ? ["seen at"] : []), `${second} ${within}`];
    line.append(...titles.map((title) => {
        const cell = document.createElement("th");
        cell.scope = "col";
        cell.textContent = title;
        return cell;
    }));
    return line;
}

/* Shows the result of the comparison; `onSearch` gets the changes of the state that a row asks for. */
function showDifference({ head, warnings, result }, part, onSearch) {
    const unit = unitOf(result);
    const more = result.row_count - result.rows.length;
    part("difference").hidden = false;
    part("verdict").replaceChildren(...linesOf(head));
    part("minds").replaceChildren(...linesOf(warnings));
    part("row_titles").replaceChildren(makeTitles(result, unit));
    part("rows").replaceChildren(...result.rows.map((row) => makeRow(row, result, unit, onSearch)));
    part("more_rows").textContent = more > 0 ? `… and ${more.toLocaleString("en")} more, which this page does not have; -n 0 puts all into it` : "";
}
