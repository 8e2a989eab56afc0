/*
 * Colours: a hue for each kind of frame and a shade for each module, the same as in the still
 * picture. Texts on them have a contrast of at least 4.5 in both themes.
 */

const KIND_HUES = [[28, 85], [212, 70], [140, 45], [0, 0], [45, 12]]; /* hue, saturation */
const SHADES = 4;
const HEAT_STEPS = 24;

function hashText(text) {
    let hash = 0;
    for (let i = 0; i < text.length; i++) {
        hash = (Math.imul(hash, 31) + text.charCodeAt(i)) >>> 0;
    }
    return hash;
}

/* Remembered in the frame. */
function frameColour(frame, isDark) {
    frame.colours = frame.colours ?? [makeFrameColour(frame, false), makeFrameColour(frame, true)];
    return frame.colours[isDark ? 1 : 0];
}

function makeFrameColour(frame, isDark) {
    const [hue, saturation] = KIND_HUES[frame.kind];
    const shade = hashText(frame.module || frame.name) % SHADES;
    const light = isDark ? 19 + 3 * shade : 68 + 4 * shade;
    return `hsl(${hue + 5 * shade} ${saturation}% ${light}%)`;
}

function foundColour(isDark) {
    return isDark ? "hsl(305 70% 30%)" : "hsl(305 85% 80%)";
}

/* `change` is from -1, much less, to 1, much more. */
function changeColour(change, isDark) {
    const strength = Math.sqrt(Math.abs(change));
    const hue = change > 0 ? 4 : 214;
    const light = isDark ? 26 : 90 - 22 * strength;
    return `hsl(${hue} ${Math.round(85 * strength)}% ${light}%)`;
}

/* The parts red, green and blue of a colour, from 0 to 255. */
function fromHsl(hue, saturation, light) {
    const strength = saturation * Math.min(light, 1 - light);
    return [0, 8, 4].map((offset) => {
        const turn = (offset + hue / 30) % 12;
        return Math.round(255 * (light - strength * Math.max(-1, Math.min(turn - 3, 9 - turn, 1))));
    });
}

/* The colours of the heat map, from no sample to the most. */
function heatColours(isDark) {
    const colours = [isDark ? [31, 34, 38] : [244, 245, 247]];
    for (let i = 1; i <= HEAT_STEPS; i++) {
        const step = i / HEAT_STEPS;
        colours.push(isDark ? fromHsl(10 + 40 * step, 0.9, 0.16 + 0.5 * step)
            : fromHsl(45 - 40 * step, 0.9, 0.88 - 0.46 * step));
    }
    return colours;
}
