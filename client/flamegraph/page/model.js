/*
 * The trees that are drawn, and the counts in them. A view is the tree of all stacks, each behind a
 * first frame of its unit, command, process or thread. It does not change with the range of time,
 * only its counts do. Parents have smaller numbers than their children, so a sum over all callers
 * is one loop.
 */

const KINDS = ["user", "kernel", "inlined", "marker", "first frame"];
const FUNCTION_MEMBERS = 5;
const TASK_MEMBERS = 6;
const NOTHING = -1;

function functionOf(model, number) {
    const at = number * FUNCTION_MEMBERS;
    const [name, module, file, line, kind] = model.functions.slice(at, at + FUNCTION_MEMBERS);
    return {
        name: model.texts[name],
        module: module < 0 ? "" : model.texts[module],
        file: file < 0 ? "" : model.texts[file],
        line,
        kind,
    };
}

/* What the first frame of a task's stacks says, as `profctl export --by` does. */
function groupLabel(model, task, by) {
    const at = task * TASK_MEMBERS;
    const [, pid, tid, process, thread, unit] = model.tasks.slice(at, at + TASK_MEMBERS);
    const numbers = pid === 0 ? "" : by === "process" ? `-${pid}` : `-${pid}/${tid}`;
    switch (by) {
    case "unit":
        return model.texts[unit];
    case "command":
        return model.texts[process];
    case "process":
        return model.texts[process] + numbers;
    default:
        return model.texts[thread] + numbers;
    }
}

/* Tasks of one label are one group, but in two segments one number may be two processes. */
function groupKey(model, task, by, label) {
    const segment = by === "process" || by === "thread" ? model.tasks[task * TASK_MEMBERS] : 0;
    return `${segment} ${label}`;
}

/* The group of each task, and the label of each group. */
function findGroups(model, by) {
    const taskCount = model.tasks.length / TASK_MEMBERS;
    const known = new Map();
    const groups = { ofTask: new Int32Array(taskCount), labels: [] };
    for (let task = 0; task < taskCount; task++) {
        const label = groupLabel(model, task, by);
        const key = groupKey(model, task, by, label);
        if (!known.has(key)) {
            known.set(key, groups.labels.length);
            groups.labels.push(label);
        }
        groups.ofTask[task] = known.get(key);
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
    return { order, ends, nodes: cpu.nodes, places: new Uint32Array(cpu.count) };
}

/* Adds a stack below its group's node, unless it is there. `owners` and `places` say which node of
 * the view a node of the model has become, and for which group. Returns the node of the view. */
function addStack(model, building, group, leaf, root) {
    const { parents, functions, owners, places, waiting } = building;
    let node = leaf;
    for (; node !== 0 && owners[node] !== group; node = model.parents[node]) {
        waiting.push(node);
    }
    let place = node === 0 ? root : places[node];
    while (waiting.length > 0) {
        node = waiting.pop();
        owners[node] = group;
        places[node] = parents.length;
        parents.push(place);
        functions.push(model.nodeFunctions[node]);
        place = places[node];
    }
    return place;
}

function addGroup(model, building, group, parts) {
    const root = building.parents.length;
    building.parents.push(0);
    building.functions.push(group);
    for (const { order, ends, nodes, places } of parts) {
        for (let i = ends[group]; i < ends[group + 1]; i++) {
            const sample = order[i];
            places[sample] = addStack(model, building, group, nodes[sample], root);
        }
    }
}

function makeGroupedView(model, by) {
    const groups = findGroups(model, by);
    const cpus = model.recordings.map((recording) => recording.cpus.map((cpu) => sortByGroup(cpu, groups)));
    const building = {
        parents: [NOTHING],
        functions: [NOTHING],
        owners: new Int32Array(model.nodeCount).fill(NOTHING),
        places: new Int32Array(model.nodeCount),
        waiting: [],
    };
    for (let group = 0; group < groups.labels.length; group++) {
        addGroup(model, building, group, cpus.flat());
    }
    return {
        count: building.parents.length,
        parents: Int32Array.from(building.parents),
        functions: Int32Array.from(building.functions),
        ends: cpus.map((list) => list.map((cpu) => cpu.places)),
        groups: groups.labels,
    };
}

/* `by` is a value of the list of first frames. `ends` has the node of each sample, by recording and
 * CPU. */
function makeView(model, by) {
    const view = by === "none" ? {
        count: model.nodeCount,
        parents: model.parents,
        functions: model.nodeFunctions,
        ends: model.recordings.map((recording) => recording.cpus.map((cpu) => cpu.nodes)),
        groups: [],
    } : makeGroupedView(model, by);
    const isGrouped = view.groups.length > 0;
    view.frames = new Map();
    view.children = new Map();
    view.groupOf = (node) => (isGrouped && view.parents[node] === 0 ? view.functions[node] : NOTHING);
    view.depths = new Uint32Array(view.count);
    for (let node = 1; node < view.count; node++) {
        view.depths[node] = view.depths[view.parents[node]] + 1;
    }
    linkChildren(view);
    return view;
}

/* A frame that is no function. */
function groupFrame(name) {
    return { name, module: "", file: "", line: 0, kind: 4 };
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

/* The samples of each node and of what it called; of those in the range [from, to) where there is
 * one. */
function countNodes(model, view, r, range) {
    const totals = new Uint32Array(view.count);
    model.recordings[r].cpus.forEach(({ times }, number) => {
        const ends = view.ends[r][number];
        const begin = range ? lowerBound(times, range[0]) : 0;
        const end = range ? lowerBound(times, range[1]) : ends.length;
        for (let i = begin; i < end; i++) {
            totals[ends[i]]++;
        }
    });
    for (let node = view.count - 1; node > 0; node--) {
        totals[view.parents[node]] += totals[node];
    }
    return totals;
}

/* The samples that a node has itself. */
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
 * how many samples that is, each once.
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

/* The ticks that a recording has seen, of all that there were; 0: it does not say. */
function seenTicks(recording) {
    const total = recording.books?.total;
    return total?.expected > 0 && recording.unselected === 0
        ? total.expected - LOSSES.reduce((sum, term) => sum + (total[term] ?? 0), 0) : 0;
}

/*
 * What has changed from the first recording to the second: the part of the seen ticks that is below
 * each node, or where they are not known, or a range is selected, of the samples.
 */
function compare(app) {
    if (app.model.recordings.length < 2) {
        return;
    }
    const seen = app.model.recordings.map(seenTicks);
    const isByTicks = !app.state.range && seen.every((ticks) => ticks > 0);
    const wholes = isByTicks ? seen : app.totals.map((totals) => Math.max(totals[0], 1));
    const [before, after] = app.totals;
    const changeOf = (node) => after[node] / wholes[1] - before[node] / wholes[0];
    let most = 0;
    for (let node = 1; node < app.view.count; node++) {
        most = Math.max(most, Math.abs(changeOf(node)));
    }
    app.changes = {
        of: (node) => (most > 0 ? Math.min(Math.max(changeOf(node) / most, -1), 1) : 0),
        text: (node) => `${percentText(before[node], wholes[0])} → ${percentText(after[node], wholes[1])} of ${isByTicks ? "the CPUs' time" : "the samples"}`,
    };
}
