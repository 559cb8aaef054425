// What row 16 has measured over time, as a table in Markdown and as a plot in SVG that needs no other file.

const HOUR_SECONDS = 3600;

/** How many rows a table has that covers less than two hours. */
const PARTS = 6;

/** The panels of the plot, from top to bottom: each line by the name of a sample's value, with its title. */
const PANELS = [
  { p99Ms: 'Milliseconds in which 99 % were answered', p50Ms: 'in which half were' },
  { memoryMib: 'Memory, MiB' },
  { fileMib: 'Database, MiB', walMib: 'write-ahead log' },
  { descriptors: 'Open descriptors' },
];

const WIDTH = 840;
const LEFT = 60;
const PANEL_HEIGHT = 110;
const PANEL_STEP = PANEL_HEIGHT + 42;

/** The samples in a row, without the pauses between sittings; `requests` counts those since the sample before. */
function inOneDay(samples) {
  let before = 0;
  let last;
  return samples.map((sample) => {
    const isNew = sample.sitting !== last?.sitting;
    if (isNew) before += last?.seconds ?? 0;
    const requests = sample.requests - (isNew ? 0 : last.requests);
    const seconds = sample.seconds - (isNew ? 0 : last.seconds);
    last = sample;
    return { ...sample, at: before + sample.seconds, requests, lasted: seconds, isNew };
  });
}

/** A row for each hour; a time below two hours is divided into PARTS rows. */
export function soakTable(samples) {
  const day = inOneDay(samples);
  const end = day.at(-1).at;
  const step = end >= 2 * HOUR_SECONDS ? HOUR_SECONDS : end / PARTS;
  // A rest of less than a minute gets no row, since the clock would not show it; it belongs to the hour before.
  const last = Math.ceil(end / step - 1 / 60) - 1;
  const rows = Map.groupBy(day, ({ at }) => Math.min(Math.ceil(at / step) - 1, last));
  const header = [
    'Until', 'Requests/s', 'p50 ms', 'p99 ms', 'Worst p99', 'Event loop p99', 'Memory MiB', 'Most', 'File MiB',
    'WAL MiB', 'Descriptors', 'Backups',
  ];
  const lines = [...rows].map(([row, part]) => {
    const all = (name) => part.map((sample) => sample[name]);
    const sum = (name) => all(name).reduce((one, other) => one + other, 0);
    const most = (name) => Math.max(...all(name));
    return [
      clock(Math.min(end, (row + 1) * step)), (sum('requests') / sum('lasted')).toFixed(0),
      middle(all('p50Ms')).toFixed(1), middle(all('p99Ms')).toFixed(1), most('p99Ms').toFixed(1),
      most('eventLoopP99Ms').toFixed(1), middle(all('memoryMib')).toFixed(0), most('memoryMib').toFixed(0),
      most('fileMib').toFixed(0), most('walMib').toFixed(1), most('descriptors'), sum('backups'),
    ];
  });
  const written = [header, header.map((_, index) => (index === 0 ? '---' : '---:')), ...lines];
  return written.map((cells) => `| ${cells.join(' | ')} |\n`).join('');
}

export function soakPlot(samples) {
  const day = inOneDay(samples);
  const end = day.at(-1).at;
  const x = (at) => (LEFT + ((WIDTH - LEFT - 10) * at) / end).toFixed(1);
  const panels = PANELS.map((panel, index) => `<g transform="translate(0 ${30 + index * PANEL_STEP})">
${panelOf(panel, day, x)}
</g>`);
  const height = 30 + PANELS.length * PANEL_STEP;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}">
<title>What row 16 of the campaign measured over ${clock(end)}${end >= HOUR_SECONDS ? ' hours' : ''}</title>
<style>
svg { background: #fff; color: #222; font: 13px sans-serif }
text { fill: currentColor } .axis, .begin { stroke: currentColor; opacity: .35 } .begin { stroke-dasharray: 3 3 }
polyline { fill: none; stroke-width: 1.5; stroke: #06c } polyline + polyline { stroke: #c50 }
tspan { fill: #06c } tspan + tspan { fill: #c50 }
@media (prefers-color-scheme: dark) {
svg { background: #181818; color: #ddd } polyline { stroke: #6af } polyline + polyline { stroke: #f94 }
tspan { fill: #6af } tspan + tspan { fill: #f94 }
}
</style>
${panels.join('\n')}
</svg>
`;
}

function panelOf(panel, day, x) {
  const lines = Object.keys(panel);
  const titles = Object.values(panel).map((title) => `<tspan>${title}</tspan>`).join(', ');
  const top = roundUp(Math.max(...lines.flatMap((name) => day.map((sample) => sample[name]))));
  const y = (value) => (PANEL_HEIGHT * (1 - value / top)).toFixed(1);
  const levels = [0, top / 2, top].map((value) => `<line class="axis" x1="${LEFT}" x2="${WIDTH - 10}" y1="${y(value)}" \
y2="${y(value)}"/><text x="${LEFT - 6}" y="${y(value)}" dy="4" text-anchor="end">${value}</text>`);
  const begins = day.filter(({ isNew }) => isNew).slice(1).map(({ at, lasted }) => {
    return `<line class="begin" x1="${x(at - lasted)}" x2="${x(at - lasted)}" y1="0" y2="${PANEL_HEIGHT}"/>`;
  });
  const end = day.at(-1).at;
  const times = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    return `<text x="${x(share * end)}" y="${PANEL_HEIGHT + 16}" text-anchor="${share === 1 ? 'end' : 'middle'}">${
      clock(share * end)}</text>`;
  });
  const drawn = lines.map((name) => {
    return `<polyline points="${day.map((sample) => `${x(sample.at)},${y(sample[name])}`).join(' ')}"/>`;
  });
  return [`<text x="${LEFT}" y="-8">${titles}</text>`, ...levels, ...times, ...begins, ...drawn].join('\n');
}

/** Rounds up to 1, 2, 4 or 5 with zeros: then half of it is short to write too. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return power * ([1, 2, 4, 5].find((digit) => digit * power >= value) ?? 10);
}

function middle(values) {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)];
}

/** Hours and minutes, or minutes and seconds below one hour. */
function clock(seconds) {
  const minutes = Math.floor(seconds / 60);
  const [whole, rest] = minutes >= 60 ? [Math.floor(minutes / 60), minutes % 60] : [minutes, Math.floor(seconds % 60)];
  return `${whole}:${String(rest).padStart(2, '0')}${minutes >= 60 ? '' : ' min'}`;
}
