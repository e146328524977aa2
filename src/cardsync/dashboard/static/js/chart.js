// Draws each chart from its table: the table is the truth, the picture its twin.
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const COLOURS = ["--accent", "--good", "--bad", "--warn"];

function draw(figure) {
  if (!window.uPlot) return;
  const canvas = figure.querySelector(".canvas");
  const lines = [...figure.querySelectorAll("tbody tr")].reverse();
  if (lines.length < 2) return;
  const names = [...figure.querySelectorAll("thead th")].slice(1).map(cell => cell.textContent);
  const at = lines.map(line => Date.parse(line.querySelector("[data-at]").dataset.at) / 1000);
  const values = names.map((_, index) =>
    lines.map(line => {
      const text = line.querySelectorAll("[data-value]")[index].dataset.value;
      return text === "" ? null : Number(text);
    }),
  );
  canvas.hidden = false;
  const series = names.map((label, index) => ({
    label,
    stroke: css(COLOURS[index % COLOURS.length]),
    width: 2,
    spanGaps: true,
    paths: uPlot.paths.stepped({ align: 1 }),
  }));
  const axis = {
    stroke: css("--soft"),
    grid: { stroke: css("--edge") },
    ticks: { stroke: css("--edge") },
  };
  const chart = new uPlot(
    { width: canvas.clientWidth, height: 256, series: [{}, ...series], axes: [axis, axis] },
    [at, ...values],
    canvas,
  );
  new ResizeObserver(() => chart.setSize({ width: canvas.clientWidth, height: 256 })).observe(
    canvas,
  );
}

document.querySelectorAll("[data-chart]").forEach(draw);
