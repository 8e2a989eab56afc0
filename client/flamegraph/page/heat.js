/*
 * The heat map: a column is a part of the time, a second mostly, and its cells are parts of that,
 * from below upward. A cell is as hot as what its samples stand for; a wait is where it ended. All cells begin at whole microseconds, as
 * times are kept, so what is selected is exact.
 */

const SPANS_US = [1e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 3e7, 6e7, 3e8, 6e8, 18e8, 36e8];
const COLUMN_WIDTH_MIN = 2;
const AXIS_HEIGHT = 16;
const TICK_WIDTH = 80;
const TICK_STEPS = [1, 2, 5, 10, 20, 50, 60, 100, 120, 300, 600]; /* columns */

/* How much time a column is of a recording of that length. */
function chooseSpan(endUs, width) {
    const least = endUs >= 2e7 ? 1e6 : endUs >= 1e6 ? 1e5 : 1e4;
    const most = Math.max(Math.floor(width / COLUMN_WIDTH_MIN), 1);
    const fitting = SPANS_US.find((span) => span >= least && endUs / span <= most);
    return fitting ?? Math.ceil(endUs / most / 36e8) * 36e8;
}

class HeatMap {
    constructor(canvas) {
        this.canvas = canvas;
        this.cursor = 0; /* the cell at hand */
    }

    /* Parts the time of a recording. */
    part(recording) {
        this.width = this.canvas.clientWidth;
        this.height = this.canvas.clientHeight - AXIS_HEIGHT;
        this.spanUs = chooseSpan(recording.endUs, this.width);
        this.rows = this.spanUs >= 1e6 ? 50 : 20;
        this.cellUs = this.spanUs / this.rows;
        this.columns = Math.ceil(recording.endUs / this.spanUs);
        this.cellCount = this.columns * this.rows;
        this.cursor = Math.min(this.cursor, this.cellCount - 1);
        this.markDrops(recording.drops);
    }

    /* Notes the cells in whose time samples were dropped. */
    markDrops(drops) {
        const changes = new Int32Array(this.cellCount + 1);
        for (const drop of drops) {
            changes[this.cellAt(drop.first_us)]++;
            changes[this.cellAt(drop.last_us) + 1]--;
        }
        this.dropped = [];
        for (let cell = 0, open = 0; cell < this.cellCount; cell++) {
            open += changes[cell];
            if (open > 0) {
                this.dropped.push(cell);
            }
        }
    }

    cellAt(timeUs) {
        return Math.min(Math.floor(timeUs / this.cellUs), this.cellCount - 1);
    }

    /* Counts the samples of the cells; `marks` says which nodes count, null: all. `stacks` are the
     * recording's in the view. */
    count(recording, { ends, cpus }, marks) {
        const counting = marks && Uint8Array.from(ends, (node) => marks[node]);
        const isCounted = (stack) => counting === null || counting[stack] === 1;
        this.counts = isOfWaits(recording) ? this.countWaits(recording, cpus, isCounted)
            : this.countSamples(recording, cpus, isCounted);
        this.image = null;
        this.most = this.counts.reduce((most, count) => Math.max(most, count), 1);
    }

    countSamples(recording, cpus, isCounted) {
        const counts = newSums(recording, this.cellCount);
        recording.cpus.forEach(({ times, values }, number) => {
            for (let i = 0; i < times.length; i++) {
                if (isCounted(cpus[number][i])) {
                    counts[Math.floor(times[i] / this.cellUs)] += valueAt(values, i);
                }
            }
        });
        return counts;
    }

    /* Each cell has of a wait the time that lies in it, in ns; the first one what lies before it, too. */
    countWaits(recording, cpus, isCounted) {
        const counts = newSums(recording, this.cellCount);
        const cellNs = 1000 * this.cellUs;
        const changes = new Float64Array(this.cellCount + 1); /* of how many waits fill a cell */
        recording.cpus.forEach(({ times, values }, number) => {
            for (let i = 0; i < times.length; i++) {
                if (!isCounted(cpus[number][i])) {
                    continue;
                }
                const endNs = 1000 * times[i];
                const lengthNs = valueAt(values, i);
                const beginNs = endNs - lengthNs;
                const first = Math.max(Math.floor(beginNs / cellNs), 0);
                const last = Math.floor(endNs / cellNs);
                if (first === last) {
                    counts[first] += lengthNs;
                    continue;
                }
                counts[first] += (first + 1) * cellNs - beginNs;
                counts[last] += endNs - last * cellNs;
                changes[first + 1]++;
                changes[last]--;
            }
        });
        for (let cell = 0, filling = 0; cell < this.cellCount; cell++) {
            filling += changes[cell];
            counts[cell] += filling * cellNs;
        }
        return counts;
    }

    /* The cell at a place of the canvas. */
    cellOf(x, y) {
        const column = Math.floor((x * this.columns) / this.width);
        const row = this.rows - 1 - Math.floor((y * this.rows) / this.height);
        const bounded = (value, limit) => Math.min(Math.max(value, 0), limit - 1);
        return bounded(column, this.columns) * this.rows + bounded(row, this.rows);
    }

    /* The time from the begin of one cell to the end of another. */
    rangeOf(one, other) {
        return [Math.min(one, other) * this.cellUs, (Math.max(one, other) + 1) * this.cellUs];
    }

    draw(range, isDark, text) {
        const context = fitCanvas(this.canvas, this.width, this.height + AXIS_HEIGHT);
        if (this.image === null || this.isDark !== isDark) {
            this.isDark = isDark;
            this.image = this.makeImage(isDark);
        }
        this.drawCells(context, range);
        context.fillStyle = isDark ? "#d08bff" : "#7a1fb8";
        this.dropped.forEach((cell) => this.drawDrop(context, cell));
        this.drawCursor(context, text);
        this.drawAxis(context, text);
    }

    /* A picture with a point for each cell. */
    makeImage(isDark) {
        const canvas = new OffscreenCanvas(this.columns, this.rows);
        const context = canvas.getContext("2d");
        const image = context.createImageData(this.columns, this.rows);
        const colours = heatColours(isDark);
        for (let cell = 0; cell < this.cellCount; cell++) {
            const row = this.rows - 1 - (cell % this.rows);
            const at = 4 * (row * this.columns + Math.floor(cell / this.rows));
            const colour = colours[Math.ceil((this.counts[cell] / this.most) * HEAT_STEPS)];
            image.data.set(colour, at);
            image.data[at + 3] = 255;
        }
        context.putImageData(image, 0, 0);
        return canvas;
    }

    /* The cells; those outside the range are faint. */
    drawCells(context, range) {
        const draw = () => context.drawImage(this.image, 0, 0, this.width, this.height);
        context.imageSmoothingEnabled = false;
        context.globalAlpha = range ? 0.22 : 1;
        draw();
        context.globalAlpha = 1;
        if (range) {
            context.save();
            context.clip(this.outlineOf(range));
            draw();
            context.restore();
        }
    }

    /* The cells of a range: a part of its first and of its last column, and all columns between. */
    outlineOf(range) {
        const path = new Path2D();
        const begin = Math.floor(range[0] / this.cellUs);
        const end = Math.min(Math.ceil(range[1] / this.cellUs), this.cellCount);
        for (let cell = begin; cell < end;) {
            const row = cell % this.rows;
            const count = Math.min(this.rows - row, end - cell);
            const { x, y, width, height } = this.boxOf(cell);
            path.rect(x, y - (count - 1) * height, width, count * height);
            cell += count;
        }
        return path;
    }

    /* Where a cell is on the canvas. */
    boxOf(cell) {
        const width = this.width / this.columns;
        const height = this.height / this.rows;
        const x = Math.floor(cell / this.rows) * width;
        return { x, y: this.height - ((cell % this.rows) + 1) * height, width, height };
    }

    /* The cell's part of a line. */
    drawDrop(context, cell) {
        const { x, y, width, height } = this.boxOf(cell);
        context.fillRect(x + width / 3, y, Math.max(width / 3, 1), height);
    }

    drawCursor(context, text) {
        if (document.activeElement === this.canvas) {
            const { x, y, width, height } = this.boxOf(this.cursor);
            context.strokeStyle = text;
            context.lineWidth = 1.5;
            context.strokeRect(x - 1, y - 1, width + 2, height + 2);
        }
    }

    drawAxis(context, text) {
        const least = (TICK_WIDTH * this.columns) / this.width;
        const step = TICK_STEPS.find((columns) => columns >= least) ?? this.columns;
        context.font = "11px system-ui, sans-serif";
        context.fillStyle = text;
        context.textBaseline = "top";
        for (let column = 0; column < this.columns; column += step) {
            const x = (column * this.width) / this.columns;
            context.fillRect(x, this.height, 1, 4);
            context.fillText(timeText(column * this.spanUs), x + 3, this.height + 2);
        }
    }
}
