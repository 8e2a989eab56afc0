/*
 * The trees that are drawn, and the counts in them. A view is the tree of all stacks, each behind a
 * first frame of its unit, command, process or thread. It does not change with the range of time,
 * only its counts do. Parents have smaller numbers than their children, so a sum over all callers
 * is one loop.
 */

const KINDS = ["user", "kernel", "inlined", "not known", "first frame"];
const FUNCTION_MEMBERS = 5;
const TASK_MEMBERS = 6;
const NOTHING = -1;

/* What reorders or hides the text around it, or a terminal obeys when the copied text is put there. */
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/* A name as a person may see it. */
function shownText(text) {
    return text.replace(CONTROL, "?");
}

function functionOf(model, number) {
    const at = number * FUNCTION_MEMBERS;
    const [name, module, file, line, kind] = model.functions.slice(at, at + FUNCTION_MEMBERS);
    return {
        name: shownText(model.texts[name]),
        module: module < 0 ? "" : shownText(model.texts[module]),
        file: file < 0 ? "" : shownText(model.texts[file]),
        line,
        kind,
    };
}

/* What the first frame of a task's stacks says, as `profctl export --by` does. */
function groupLabel(model, task, by) {
    const { tasks, texts } = model;
    const at = task * TASK_MEMBERS;
    const [pid, tid, process, thread, unit] = [tasks[at + 1], tasks[at + 2], tasks[at + 3], tasks[at + 4], tasks[at + 5]];
    switch (by) {
    case "unit":
        return texts[unit];
    case "command":
        return texts[process];
    case "process":
        return pid === 0 ? texts[process] : `${texts[process]}-${pid}`;
    default:
        return pid === 0 ? texts[thread] : `${texts[thread]}-${pid}/${tid}`;
    }
}

/* The group of each task, and the label of each group. Tasks of one label are one group, but in two
 * segments one number may be two processes. */
function findGroups(model, by) {
    const taskCount = model.tasks.length / TASK_MEMBERS;
    const hasNumbers = by === "process" || by === "thread";
    const known = new Map();
    const groups = { ofTask: new Int32Array(taskCount), labels: [] };
    for (let task = 0; task < taskCount; task++) {
        const label = groupLabel(model, task, by);
        const key = hasNumbers ? `${model.tasks[task * TASK_MEMBERS]} ${label}` : label;
        let group = known.get(key);
        if (group === undefined) {
            group = groups.labels.push(label) - 1;
            known.set(key, group);
        }
        groups.ofTask[task] = group;
    }
    return groups;
}

function functionNames(model) {
    if (!model.names) {
        model.names = [];
        for (let at = 0; at < model.functions.length; at += FUNCTION_MEMBERS) {
            model.names.push(model.texts[model.functions[at]]);
        }
    }
    return model.names;
}

/* Links each node's children. */
function linkChildren(view) {
    view.firstChild = new Int32Array(view.count).fill(NOTHING);
    view.nextSibling = new Int32Array(view.count).fill(NOTHING);
    for (let node = view.count - 1; node > 0; node--) {
        view.nextSibling[node] = view.firstChild[view.parents[node]];
        view.firstChild[view.parents[node]] = node;
    }
}

/* Samples of one CPU by group: their order, and where each group ends in it, the first at 1. */
function sortByGroup(cpu, groups) {
    const ends = new Uint32Array(groups.labels.length + 1);
    const order = new Uint32Array(cpu.count);
    for (let i = 0; i < cpu.count; i++) {
        ends[groups.ofTask[cpu.tasks[i]] + 1]++;
    }
    for (let group = 1; group <= groups.labels.length; group++) {
        ends[group] += ends[group - 1];
    }
    const next = ends.slice();
    for (let i = 0; i < cpu.count; i++) {
        order[next[groups.ofTask[cpu.tasks[i]]]++] = i;
    }
    return { order, ends, stacks: cpu.stacks, places: new Uint32Array(cpu.count) };
}

/* Numbers, and room for more. */
class Column {
    constructor() {
        this.numbers = new Uint32Array(1 << 16);
        this.count = 0;
    }

    add(number) {
        if (this.count === this.numbers.length) {
            const more = new Uint32Array(2 * this.count);
            more.set(this.numbers);
            this.numbers = more;
        }
        this.numbers[this.count] = number;
        return this.count++;
    }

    taken() {
        return this.numbers.subarray(0, this.count);
    }
}

/* The nodes of a view while it is made, and, for each node of the model, the group for which it was
 * added last and as which node of the view. */
class Building {
    constructor(nodeCount) {
        this.parents = new Column();
        this.functions = new Column();
        this.added = new Int32Array(2 * nodeCount).fill(NOTHING);
        this.waiting = [];
    }

    add(parent, number) {
        this.parents.add(parent);
        return this.functions.add(number);
    }
}

/* The stacks of a recording in a view: in which node of the view each ends, and, for each stack of the
 * recording, the group for which it was added last and as which stack of the view. */
class Stacks {
    constructor(nodes) {
        this.nodes = nodes;
        this.added = new Int32Array(2 * nodes.length).fill(NOTHING);
        this.ends = new Column();
    }
}

/* Adds a stack below its group's node, unless it is there. Returns the node of the view. */
function addStack(model, building, group, leaf, root) {
    const { added, waiting } = building;
    let node = leaf;
    for (; node !== 0 && added[2 * node] !== group; node = model.parents[node]) {
        waiting.push(node);
    }
    let place = node === 0 ? root : added[2 * node + 1];
    while (waiting.length > 0) {
        node = waiting.pop();
        place = building.add(place, model.nodeFunctions[node]);
        added[2 * node] = group;
        added[2 * node + 1] = place;
    }
    return place;
}

function addGroup(model, building, group, root, { stacks, cpus }) {
    const { nodes, added } = stacks;
    for (const { order, ends, stacks: ofSamples, places } of cpus) {
        for (let i = ends[group]; i < ends[group + 1]; i++) {
            const stack = ofSamples[order[i]];
            if (added[2 * stack] !== group) {
                added[2 * stack] = group;
                added[2 * stack + 1] = stacks.ends.add(addStack(model, building, group, nodes[stack], root));
            }
            places[order[i]] = added[2 * stack + 1];
        }
    }
}

function makeGroupedView(model, by) {
    const groups = findGroups(model, by);
    const recordings = model.recordings.map(({ nodes, cpus }) => (
        { stacks: new Stacks(nodes), cpus: cpus.map((cpu) => sortByGroup(cpu, groups)) }));
    const building = new Building(model.nodeCount);
    building.add(0, 0);
    groups.labels.forEach((label, group) => {
        const root = building.add(0, group);
        recordings.forEach((recording) => addGroup(model, building, group, root, recording));
    });
    return {
        count: building.parents.count,
        parents: building.parents.taken(),
        functions: building.functions.taken(),
        stacks: recordings.map(({ stacks, cpus }) => ({ ends: stacks.ends.taken(), cpus: cpus.map((cpu) => cpu.places) })),
        groups: groups.labels,
    };
}

/* `by` is a value of the list of first frames. `stacks` has for each recording the nodes in which its
 * stacks end, and for each of its CPUs which of these each sample has. */
function makeView(model, by) {
    const view = by === "none" ? {
        count: model.nodeCount,
        parents: model.parents,
        functions: model.nodeFunctions,
        stacks: model.recordings.map(({ nodes, cpus }) => ({ ends: nodes, cpus: cpus.map((cpu) => cpu.stacks) })),
        groups: [],
    } : makeGroupedView(model, by);
    const isGrouped = view.groups.length > 0;
    view.frames = new Map();
    view.children = new Map();
    view.groupOf = (node) => (isGrouped && node !== 0 && view.parents[node] === 0 ? view.functions[node] : NOTHING);
    view.depths = new Uint32Array(view.count);
    for (let node = 1; node < view.count; node++) {
        view.depths[node] = view.depths[view.parents[node]] + 1;
    }
    linkChildren(view);
    return view;
}

/* A frame that is no function. */
function groupFrame(name) {
    return { name: shownText(name), module: "", file: "", line: 0, kind: 4 };
}

/* What a node of a view is shown as; remembered, since all that is drawn asks for it. */
function describeNode(model, view, node) {
    const group = view.groupOf(node);
    const key = node === 0 ? "all" : group === NOTHING ? view.functions[node] : `group ${group}`;
    if (!view.frames.has(key)) {
        view.frames.set(key, node === 0 ? groupFrame("all")
            : group === NOTHING ? functionOf(model, view.functions[node]) : groupFrame(view.groups[group]));
    }
    return view.frames.get(key);
}

/* The first of the sorted times that is not below `time`. */
function lowerBound(times, time) {
    let low = 0;
    let high = times.length;
    while (low < high) {
        const middle = (low + high) >>> 1;
        if (times[middle] < time) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Room for sums of what a recording's samples stand for. */
function newSums(recording, length) {
    return recording.has_values ? new Float64Array(length) : new Uint32Array(length);
}

/* What a sample stands for; `values` null: 1 each. */
function valueAt(values, i) {
    return values === null ? 1 : values[i];
}

/* Adds to the sum of each stack what its samples from `begin` to `end` stand for, times `sign`. */
function addSamples(sums, { stacks, values }, begin, end, sign) {
    for (let i = begin; i < end; i++) {
        sums[stacks[i]] += sign * valueAt(values, i);
    }
}

/* The samples of a view's CPUs. */
function samplesOf(recording, { cpus }) {
    return recording.cpus.map(({ values }, number) => ({ stacks: cpus[number], values }));
}

function countAllStacks(recording, stacks) {
    const sums = newSums(recording, stacks.ends.length);
    samplesOf(recording, stacks).forEach((samples) => addSamples(sums, samples, 0, samples.stacks.length, 1));
    return sums;
}

/* Whether the samples are waits: each comes as its wait ends, and stands for the time before. */
function isOfWaits(recording) {
    return recording.event === "off-cpu" || recording.event === "preempted";
}

/* Adds to the sum of each stack what its waits have in the range [from, to), in ns. */
function addWaits(sums, { stacks, values }, times, [from, to]) {
    for (let i = lowerBound(times, from); i < times.length; i++) {
        const begin = Math.max(1000 * times[i] - valueAt(values, i), 1000 * from);
        sums[stacks[i]] += Math.max(1000 * Math.min(times[i], to) - begin, 0);
    }
}

function countWaits(recording, stacks, range) {
    const sums = newSums(recording, stacks.ends.length);
    const ofCpus = samplesOf(recording, stacks);
    recording.cpus.forEach(({ times }, number) => addWaits(sums, ofCpus[number], times, range));
    return sums;
}

/* What the samples of each stack stand for in the range [from, to). Of a range with most samples the
 * others are taken from the whole, which is remembered. */
function countStacks(recording, stacks, range) {
    if (isOfWaits(recording)) {
        return countWaits(recording, stacks, range);
    }
    const ofCpus = samplesOf(recording, stacks);
    const parts = recording.cpus.map(({ times }, number) => (
        { of: ofCpus[number], begin: lowerBound(times, range[0]), end: lowerBound(times, range[1]) }));
    const samples = parts.reduce((count, { begin, end }) => count + end - begin, 0);
    if (2 * samples < recording.sampleCount) {
        const sums = newSums(recording, stacks.ends.length);
        parts.forEach(({ of, begin, end }) => addSamples(sums, of, begin, end, 1));
        return sums;
    }
    const sums = stacks.whole.slice();
    parts.forEach(({ of, begin, end }) => {
        addSamples(sums, of, 0, begin, -1);
        addSamples(sums, of, end, of.stacks.length, -1);
    });
    return sums;
}

/* What the samples of each node and of what it called stand for, in the range where there is one. */
function countNodes(model, view, r, range) {
    const stacks = view.stacks[r];
    const { parents, count } = view;
    const totals = newSums(model.recordings[r], count);
    stacks.whole ??= countAllStacks(model.recordings[r], stacks);
    const counts = range ? countStacks(model.recordings[r], stacks, range) : stacks.whole;
    counts.forEach((samples, stack) => {
        totals[stacks.ends[stack]] += samples;
    });
    for (let node = count - 1; node > 0; node--) {
        totals[parents[node]] += totals[node];
    }
    return totals;
}

/* What the samples stand for that a node has itself. */
function selfOf(view, totals, node) {
    let self = totals[node];
    for (let child = view.firstChild[node]; child !== NOTHING; child = view.nextSibling[child]) {
        self -= totals[child];
    }
    return self;
}

/* Whether each node is the one, or below it. */
function markInside(view, top) {
    const inside = new Uint8Array(view.count);
    inside[top] = 1;
    for (let node = Math.max(top, 1); node < view.count; node++) {
        inside[node] |= inside[view.parents[node]];
    }
    return inside;
}

/* A test of names for what is searched, or null: there is nothing to search, or no way to. */
function makeTest(text) {
    const expression = /^\/(.+)\/$/.exec(text);
    if (expression) {
        try {
            const pattern = new RegExp(expression[1], "i");
            return (name) => pattern.test(name);
        } catch {
            return null;
        }
    }
    const wanted = text.toLowerCase();
    return text === "" ? null : (name) => name.toLowerCase().includes(wanted);
}

/*
 * Which nodes a search finds, and which have such a frame among those below the zoom or are one;
 * what these samples stand for, each once.
 */
function search(model, view, totals, inside, test) {
    const ofFunction = Uint8Array.from(functionNames(model), (name) => (test(name) ? 1 : 0));
    const ofGroup = view.groups.map((label) => (test(label) ? 1 : 0));
    const found = new Uint8Array(view.count);
    const under = new Uint8Array(view.count);
    let samples = 0;
    for (let node = 1; node < view.count; node++) {
        const group = view.groupOf(node);
        found[node] = group === NOTHING ? ofFunction[view.functions[node]] : ofGroup[group];
        under[node] = under[view.parents[node]];
        if (found[node] && inside[node] && !under[node]) {
            under[node] = 1;
            samples += totals[node];
        }
    }
    return { found, under, samples };
}

/* A node's children in the order of their names; remembered, since only nodes that are drawn are
 * asked for them. */
function childrenOf(model, view, node) {
    let children = view.children.get(node);
    if (!children) {
        children = [];
        for (let child = view.firstChild[node]; child !== NOTHING; child = view.nextSibling[child]) {
            children.push({ child, name: describeNode(model, view, child).name });
        }
        children.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.child - b.child));
        children = Uint32Array.from(children, ({ child }) => child);
        view.children.set(node, children);
    }
    return children;
}
