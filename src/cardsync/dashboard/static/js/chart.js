// Draws each line chart from the table beside it, which has the same figures. The legend shows the
// newest figures, or those under the pointer. A canvas does not support light-dark(), so the script
// reads each color from an element.
const probe = document.body.appendChild(document.createElement("i"));
probe.hidden = true;
const css = name => {
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
};

// A date without a time would be read as midnight in UTC, which is the evening before in America.
const timeOf = at => Date.parse(at.length === 10 ? `${at}T00:00` : at) / 1000;

function rowsOf(figure) {
  return [...figure.querySelectorAll("tbody tr")]
    .map(line => {
      const when = line.querySelector("[data-at]");
      const cells = [...line.querySelectorAll("[data-value]")];
      return {
        at: timeOf(when.dataset.at),
        values: cells.map(({ dataset }) => (dataset.value === "" ? null : Number(dataset.value))),
        words: [when, ...cells].map(cell => cell.textContent.trim()),
      };
    })
    .sort((one, other) => one.at - other.at);
}

function amountsOf(figure) {
  const money = { style: "currency", currency: "USD", maximumFractionDigits: 2 };
  const format = new Intl.NumberFormat("en-US", "counts" in figure.dataset ? {} : money);
  return (_, splits) => splits.map(value => format.format(value).replace(/\.00$/, ""));
}

// Labels of the time axis: days, or months if a step is longer than a month, with the year where it
// changes.
const MONTH = 28 * 86_400;
function daysOf(_, splits, axis, space, step) {
  let year;
  return splits.map(at => {
    const day = new Date(at * 1000);
    const short = { month: "short", ...(step < MONTH && { day: "numeric" }) };
    const text = new Intl.DateTimeFormat("en-US", short).format(day);
    if (day.getFullYear() === year) return text;
    year = day.getFullYear();
    return `${text}\n${year}`;
  });
}

function draw(figure) {
  if (!window.uPlot) return;
  const canvas = figure.querySelector(".canvas");
  const rows = rowsOf(figure);
  if (rows.length < 2) return;
  const words = [...figure.querySelectorAll("[data-when], [data-latest]")];
  const show = row => row.words.forEach((text, place) => (words[place].textContent = text));
  canvas.hidden = false;
  const series = [...figure.querySelectorAll(".swatch rect")].map(swatch => ({
    stroke: getComputedStyle(swatch).fill,
    width: 2,
    spanGaps: true,
    points: { show: false },
    paths: uPlot.paths.stepped({ align: 1 }),
  }));
  const axis = {
    stroke: css("--soft"),
    grid: { stroke: css("--edge") },
    ticks: { stroke: css("--edge") },
  };
  const chart = new uPlot(
    {
      width: canvas.clientWidth,
      height: 256,
      series: [{}, ...series],
      axes: [{ ...axis, values: daysOf }, { ...axis, size: 64, values: amountsOf(figure) }],
      legend: { show: false },
      hooks: { setCursor: [({ cursor }) => show(rows[cursor.idx ?? rows.length - 1])] },
    },
    [rows.map(row => row.at), ...series.map((_, place) => rows.map(row => row.values[place]))],
    canvas,
  );
  for (const box of figure.querySelectorAll("[data-line]")) {
    const shown = () => chart.setSeries(Number(box.dataset.line), { show: box.checked });
    box.addEventListener("change", shown);
    if (!box.checked) shown();
  }
  new ResizeObserver(() => chart.setSize({ width: canvas.clientWidth, height: 256 })).observe(
    canvas,
  );
}

document.querySelectorAll("[data-chart]").forEach(draw);
