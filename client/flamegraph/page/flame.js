/*
 * Draws a view on a canvas that is as large as the part of it that is seen. What is zoomed to is as
 * wide as the canvas, and so are its callers. Frames that are too narrow to be seen are not looked
 * at, so drawing costs what is shown.
 */

const ROW_HEIGHT = 18;
const WIDTH_MIN = 0.4;
const LABEL_WIDTH_MIN = 22;
const FONT = "12px ui-monospace, Menlo, Consolas, monospace";

/* Makes a canvas as sharp as the screen. */
function fitCanvas(canvas, width, height) {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return context;
}

class FlameGraph {
    constructor(canvas, sheet, scroll) {
        this.canvas = canvas;
        this.sheet = sheet;
        this.scroll = scroll;
        this.rows = []; /* of each depth the frames from left to right: { node, x, width } */
        this.isIcicle = false;
        this.outlined = NOTHING;
    }

    /* Finds the place of all frames that are seen when `zoom` is as wide as the canvas. */
    layOut(model, view, totals, zoom) {
        this.model = model;
        this.view = view;
        this.totals = totals;
        this.width = this.scroll.clientWidth;
        this.rows = [];
        for (let node = zoom; node > 0; node = view.parents[node]) {
            this.place(view.parents[node], 0, this.width);
        }
        this.placeBelow(zoom);
        this.zoomDepth = view.depths[zoom];
        this.sheet.style.height = `${this.rows.length * ROW_HEIGHT}px`;
    }

    place(node, x, width) {
        const depth = this.view.depths[node];
        this.rows[depth] ??= [];
        this.rows[depth].push({ node, x, width });
    }

    placeBelow(zoom) {
        const { depths } = this.view;
        const scale = this.totals[zoom] > 0 ? this.width / this.totals[zoom] : 0;
        this.place(zoom, 0, this.width);
        for (let depth = depths[zoom]; depth < this.rows.length; depth++) {
            for (const { node, x } of this.rows[depth]) {
                let left = x;
                for (const child of childrenOf(this.model, this.view, node)) {
                    const width = this.totals[child] * scale;
                    if (width >= WIDTH_MIN) {
                        this.place(child, left, width);
                    }
                    left += width;
                }
            }
        }
    }

    /* Where a row is in the sheet. */
    rowTop(depth) {
        const row = this.isIcicle ? depth : this.sheetRows() - 1 - depth;
        return row * ROW_HEIGHT;
    }

    /* How many rows the sheet has: a flame stands on its ground. */
    sheetRows() {
        const seen = Math.floor(this.scroll.clientHeight / ROW_HEIGHT);
        return Math.max(this.rows.length, this.isIcicle ? 0 : seen);
    }

    /* `look` says the colour of a node and its name. */
    draw(look) {
        const height = this.scroll.clientHeight;
        this.canvas.style.height = `${height}px`;
        this.context = fitCanvas(this.canvas, this.width, height);
        this.context.font = FONT;
        this.context.textBaseline = "middle";
        this.letter = this.context.measureText("M").width;
        const top = this.scroll.scrollTop;
        this.rows.forEach((row, depth) => {
            const y = this.rowTop(depth) - top;
            if (y > -ROW_HEIGHT && y < height) {
                this.drawRow(row, y, depth < this.zoomDepth, look);
            }
        });
    }

    drawRow(row, y, isFaint, look) {
        for (const frame of row) {
            this.context.globalAlpha = isFaint ? 0.55 : 1;
            this.context.fillStyle = look.colour(frame.node);
            this.context.fillRect(frame.x, y, Math.max(frame.width - 0.5, WIDTH_MIN), ROW_HEIGHT - 1);
            this.context.globalAlpha = 1;
            if (frame.width >= LABEL_WIDTH_MIN) {
                this.drawLabel(look.name(frame.node), frame, y, look.text);
            }
            if (frame.node === this.outlined) {
                this.context.strokeStyle = look.text;
                this.context.lineWidth = 2;
                this.context.strokeRect(frame.x + 1, y + 1, Math.max(frame.width - 2, 1), ROW_HEIGHT - 3);
            }
        }
    }

    drawLabel(name, frame, y, colour) {
        const letters = Math.floor((frame.width - 6) / this.letter);
        const text = name.length <= letters ? name : `${name.slice(0, Math.max(letters - 1, 1))}…`;
        this.context.fillStyle = colour;
        this.context.fillText(text, frame.x + 3, y + ROW_HEIGHT / 2, frame.width - 4);
    }

    /* The node at a place of the canvas, or NOTHING. */
    nodeAt(x, y) {
        const row = Math.floor((y + this.scroll.scrollTop) / ROW_HEIGHT);
        const depth = this.isIcicle ? row : this.sheetRows() - 1 - row;
        const frame = (this.rows[depth] ?? []).find((at) => x >= at.x && x < at.x + at.width);
        return frame ? frame.node : NOTHING;
    }

    find(node) {
        const row = this.rows[this.view.depths[node]] ?? [];
        return { row, at: row.findIndex((frame) => frame.node === node) };
    }

    isShown(node) {
        return node !== NOTHING && this.find(node).at >= 0;
    }

    /* The frame left or right of a node, its caller, or the widest that it called; NOTHING: there
     * is none. */
    neighbour(node, step) {
        const { row, at } = this.find(node);
        switch (step) {
        case "left":
            return at > 0 ? row[at - 1].node : NOTHING;
        case "right":
            return at + 1 < row.length ? row[at + 1].node : NOTHING;
        case "caller":
            return node === 0 ? NOTHING : this.view.parents[node];
        default:
            return this.widestChild(node);
        }
    }

    widestChild(node) {
        const below = this.rows[this.view.depths[node] + 1] ?? [];
        const called = below.filter((frame) => this.view.parents[frame.node] === node);
        const widest = Math.max(0, ...called.map((frame) => frame.width));
        return called.find((frame) => frame.width === widest)?.node ?? NOTHING;
    }

    /* Scrolls to where a row is seen. */
    reveal(depth) {
        const top = this.rowTop(depth);
        const below = top + ROW_HEIGHT - this.scroll.clientHeight;
        this.scroll.scrollTop = Math.min(top, Math.max(below, this.scroll.scrollTop));
    }

    /* Scrolls to where the graph begins. */
    revealRoot() {
        this.scroll.scrollTop = this.isIcicle ? 0 : this.scroll.scrollHeight;
    }
}
