/*
 * Numbers, times and what else the page says in words. All of it is shown as text, never as markup.
 */

const LOSSES = ["lost", "throttled", "missed", "dropped"];
const OTHER_TICKS = ["filtered", "dropped", "lost", "throttled", "missed", "idle", "unexplained"];
const TEXT_PERCENT_MIN = 0.5;

function countText(count) {
    return `${count.toLocaleString("en")} ${count === 1 ? "sample" : "samples"}`;
}

/* A unit's name for one of it: "fault", "switch". */
function singular(unit) {
    return /[hs]es$/.test(unit) ? unit.slice(0, -2) : unit.replace(/s$/, "");
}

/* What threads are in a wait of the recording's event; undefined where samples are no waits. */
function waitState(recording) {
    return { "off-cpu": "blocked", "preempted": "ready" }[recording.event];
}

function nanosecondsText(ns) {
    const [scale, name] = [[1e9, "s"], [1e6, "ms"], [1e3, "us"]].find(([least]) => ns >= least) ?? [1, "ns"];
    return `${+(ns / scale).toPrecision(4)} ${name}`;
}

/* What samples stand for: a number of samples of the clock, or an amount of another event. */
function amountText(value, recording) {
    if (recording.event === undefined) {
        return countText(value);
    }
    if (recording.unit === "ns") {
        return [nanosecondsText(value), waitState(recording)].filter(Boolean).join(" ");
    }
    return `${value.toLocaleString("en")} ${shownText(value === 1 ? singular(recording.unit) : recording.unit)}`;
}

/* The same without its unit where that is said before. */
function numberOnlyText(value, recording) {
    return recording.unit === "ns" ? nanosecondsText(value) : value.toLocaleString("en");
}

/* What a part of all samples is a part of. */
function wholeText(recording) {
    return recording.event === undefined ? "samples" : waitState(recording) ? `${waitState(recording)} time`
        : recording.unit === "ns" ? "time" : shownText(recording.unit);
}

function percentText(part, whole) {
    return `${(whole > 0 ? (100 * part) / whole : 0).toFixed(2)} %`;
}

/* A name as an expression that finds names of the same letters, small or capital, and no longer ones.
 * What could hide or reorder text is written as its number. */
function exactly(name) {
    const plain = name.replace(/[/\\^$.*+?()[\]{}|]/g, "\\$&");
    return `/^${plain.replace(CONTROL, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`)}$/`;
}

/* A time since the recording's first sample, as `--from` and `--to` take it. */
function timeText(us) {
    return `${+(us / 1e6).toFixed(6)} s`;
}

/* What samples stand for, and of the clock how much CPU time that is. */
function costText(value, recording) {
    const seconds = (value * recording.period_ns) / 1e9;
    return recording.period_ns > 0 ? `${countText(value)} (${+seconds.toPrecision(3)} s of CPU time)`
        : amountText(value, recording);
}

/* "2026-11-27 02:53:28 +01:00": the reader's own clock. */
function dateText(unixMs) {
    const aheadMin = -new Date(unixMs).getTimezoneOffset();
    const local = new Date(unixMs + aheadMin * 60000).toISOString();
    const [hours, minutes] = [Math.trunc(Math.abs(aheadMin) / 60), Math.abs(aheadMin) % 60];
    const two = (number) => String(number).padStart(2, "0");
    return `${local.slice(0, 10)} ${local.slice(11, 19)} ${aheadMin < 0 ? "-" : "+"}${two(hours)}:${two(minutes)}`;
}

/* Where, when and what, as a report begins: "web1 (Linux 6.1), 2026-11-27 02:53:28 +01:00: ./lock". */
function originText(recording) {
    if (recording.parts.length > 1) {
        return "";
    }
    const began = recording.began_unix_ms === undefined ? [] : [dateText(recording.began_unix_ms)];
    return recording.host === undefined ? began.map((date) => `began at ${date}, `).join("")
        : `${[shownText(recording.host), ...began].join(", ")}: ${shownText(recording.what)}; `;
}

/* The CPUs that were sampled; a recording without books names those that have samples. */
function cpusOf({ books, cpus }) {
    const ofBooks = Array.isArray(books?.cpus) ? books.cpus : [];
    return (ofBooks.length > 0 ? ofBooks : cpus).map((line) => line?.cpu);
}

function factsText(recording) {
    const { parts } = recording;
    const seconds = parts.reduce((sum, part) => sum + part.length_ns / 1e9, 0);
    const cpuCount = new Set(parts.flatMap(cpusOf)).size;
    const names = parts.length > 1 ? `${parts.map(({ name }) => shownText(name)).join(", ")}: ` : "";
    const event = recording.event === undefined ? ""
        : ` of ${shownText(recording.event)}, ${costText(recording.total, recording)},`;
    const facts = [`${names}${countText(recording.sampleCount)}${event} in ${+seconds.toFixed(3)} s`];
    if (waitState(recording) === undefined) {
        facts.push(`${cpuCount} ${cpuCount === 1 ? "CPU" : "CPUs"}`);
    }
    if (recording.period_ns > 0) {
        facts.push(`one sample each ${+(recording.period_ns / 1e6).toPrecision(4)} ms of a CPU`);
    }
    return facts.join(", ");
}

/* What a cell of the heat map is. */
function cellsText({ spanUs, rows, cellUs }, recording) {
    return `A column is ${timeText(spanUs)}; its ${rows} rows are the ${rows} times ${nanosecondsText(cellUs * 1000)} of that, from below upward; the stronger a cell's colour, the more ${wholeText(recording)} it has`;
}

/* What a reader should know that the graph does not show: sentences, and which of them is no warning. */
function remarks({ parts }) {
    const of = (part) => (parts.length > 1 ? `${shownText(part.name)}: ` : "");
    return parts.flatMap((part) => [
        ...accounts(part),
        ...partWarnings(part).map((text) => ({ text, isGrave: true })),
    ].map(({ text, isGrave }) => ({ text: of(part) + text, isGrave })));
}

/* The same of all recordings; what holds for several events of one stands once. */
function allRemarks(recordings) {
    const byText = new Map(recordings.flatMap(remarks).map((remark) => [remark.text, remark]));
    return [...byText.values()];
}

/* Where all ticks of the clock went, by the books; of waits only that none of them has a sample. */
function accounts(recording) {
    const hasNone = waitState(recording) !== undefined && ticksOf(recording, "kept") === 0;
    if (hasNone && ticksOf(recording, "expected") > 0) {
        return [{ text: "No tick of the timer has a sample in the recording: what was recorded did not run when one was due, so there is no time running", isGrave: false }];
    }
    if (recording.event !== undefined || ticksOf(recording, "expected") === 0) {
        return [];
    }
    const ticks = (term) => ticksOf(recording, term).toLocaleString("en");
    const about = { filtered: recording.is_whole ? " (the profiler itself)" : " (other programs, and the profiler itself)" };
    const others = OTHER_TICKS.filter((term) => ticksOf(recording, term) !== 0).map((term) => `${ticks(term)} ${term}${about[term] ?? ""}`);
    const text = `Of ${ticks("expected")} ticks of the timer ${ticks("kept")} have a sample in the recording${others.length > 0 ? `; the others: ${others.join(", ")}` : ""}`;
    return [{ text, isGrave: LOSSES.some((term) => ticksOf(recording, term) > 0) }];
}

/* What was counted of another event and has no sample. */
function lossTexts(recording) {
    if (recording.event === undefined) {
        return [];
    }
    const total = recording.books?.events?.find?.(({ event }) => event === recording.event)?.total;
    const [counted, sampled] = [total?.counted, total?.sampled];
    return typeof counted === "number" && typeof sampled === "number" && sampled < 0.99 * counted
        ? [`Samples stand for ${percentText(sampled, counted)} of the ${wholeText(recording)} that the machine counted`] : [];
}

function partWarnings(recording) {
    const texts = [...recording.damages, ...lossTexts(recording)];
    if (recording.unselected > 0) {
        texts.push(`${countText(recording.unselected)} were not selected; they are not in this page`);
    }
    if (recording.left_out > 0) {
        texts.push(`${countText(recording.left_out)} are shown as [left out], for want of memory`);
    }
    return texts.concat(dropTexts(recording.drops));
}

function dropTexts(drops) {
    const count = drops.reduce((sum, drop) => sum + drop.count, 0);
    const times = drops.slice(0, 3).map((drop) => `at ${timeText(drop.first_us)} on CPU ${drop.cpu}`);
    const more = drops.length > 3 ? ` and ${drops.length - 3} more times` : "";
    return count === 0 ? [] : [`${countText(count)} found the buffer full: ${times.join(", ")}${more}; the heat map has a line there`];
}

/* Where a frame is. */
function placeText(frame) {
    const base = frame.file.slice(frame.file.lastIndexOf("/") + 1);
    const parts = [frame.kind === 1 || frame.kind === 2 ? KINDS[frame.kind] : "",
        frame.module, frame.line > 0 ? `${base}:${frame.line}` : ""];
    return parts.filter((part) => part !== "").join(", ");
}

/* A frame's name as `profctl export --format folded` writes it. */
function foldedName(frame) {
    return frame.name + (frame.kind === 1 ? "_[k]" : frame.kind === 2 ? "_[i]" : "");
}

/* The zoom as an indented text, without what is very small. */
function treeText(app) {
    const { view, state } = app;
    const totals = app.totals[state.shown];
    const recording = app.model.recordings[state.shown];
    const isTime = recording.unit === "ns";
    const title = recording.event === undefined ? "samples" : isTime ? "ms" : shownText(recording.unit);
    const numberOf = (value) => (isTime ? (value / 1e6).toFixed(3) : String(value));
    const width = Math.max(10, title.length, numberOf(totals[state.zoom]).length);
    const lines = [`${"percent".padStart(8)} ${title.padStart(width)}  frame`];
    const waiting = [state.zoom];
    const callers = [];
    for (let node = state.zoom; node > 0; node = view.parents[node]) {
        callers.unshift(foldedName(describeNode(app.model, view, view.parents[node])));
    }
    while (waiting.length > 0) {
        const node = waiting.pop();
        const percent = (100 * totals[node]) / totals[state.zoom];
        const indent = " ".repeat(view.depths[node] - view.depths[state.zoom]);
        lines.push(`${percent.toFixed(2).padStart(8)} ${numberOf(totals[node]).padStart(width)}  ${indent}${foldedName(describeNode(app.model, view, node))}`);
        const children = [...childrenOf(app.model, view, node)].filter((child) => totals[child] > 0 && (100 * totals[child]) / totals[state.zoom] >= TEXT_PERCENT_MIN);
        waiting.push(...children.sort((a, b) => totals[a] - totals[b]));
    }
    return [...headLines(app, callers), "", ...lines, ""].join("\n");
}

function headLines(app, callers) {
    const { state } = app;
    const totals = app.totals[state.shown];
    const recording = app.model.recordings[state.shown];
    const lines = [shownText(recording.name) + (recording.event === undefined ? "" : `, ${shownText(recording.event)}`)];
    if (state.range) {
        lines.push(`from ${timeText(state.range[0])} to ${timeText(state.range[1])}`);
    }
    lines.push(`${amountText(totals[state.zoom], recording)}, ${percentText(totals[state.zoom], totals[0])} of the whole`);
    if (app.matches) {
        lines.push(`search ${state.search}: ${amountText(app.matches.samples, recording)}, ${percentText(app.matches.samples, totals[state.zoom])}`);
    }
    return callers.length > 0 ? [...lines, `called by ${callers.join(" > ")}`] : lines;
}
