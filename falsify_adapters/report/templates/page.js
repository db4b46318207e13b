"use strict";
// Shows what was computed before: picks a mixture and a threshold, moves lines, decides nothing.
(() => {
  const MARKS = {PASS: "✓", FAIL: "✗", "UNDER-NS": "?"};
  const FULL = {P: "PASS", F: "FAIL", U: "UNDER-NS"};
  const number = (value, digits) => value.toFixed(digits).replace(/^-(0\.?0*)$/, "$1");
  const signed = (value) => (value > 0 && +value.toFixed(3) > 0 ? "+" : "") + number(value, 3);

  function start(root) {
    const data = JSON.parse(root.querySelector(".data").textContent);
    const [top, bottom] = data.axis;
    const y = (value) => bottom - (bottom - top) * Math.min(Math.max(value / data.top, 0), 1);
    const find = (selector, from = root) => from.querySelector(selector);
    const share = find(".share");
    const threshold = find(".threshold");
    const stepAt = (point, position) => point.steps.findLast((step) => step[0] <= position);

    function place(line, from, to = from) {
      line.setAttribute("y1", y(from));
      line.setAttribute("y2", y(to));
    }

    function draw(figure, score, [mean, delta, low, high, lowest, highest], verdict, tau) {
      const svg = find("svg", figure);
      const bar = find(".bar", svg);
      bar.setAttribute("y", y(score));
      bar.setAttribute("height", Math.max(bottom - y(score), 1));
      const band = find(".band", svg);
      band.setAttribute("y", y(highest));
      band.setAttribute("height", Math.max(y(lowest) - y(highest), 1.5));
      place(find(".null-mean", svg), mean);
      place(find(".tau", svg), mean + tau);
      const [reach, end] = svg.querySelectorAll(".gap");
      place(reach, mean, score);
      place(end, score);
      const label = find(".gap-label", svg);
      label.textContent = signed(delta);
      const near = Math.abs(y(mean) - y(score)) < 20;
      const above = Math.min(y(score), y(mean + tau)) - 6;
      label.setAttribute("y", near ? above : (y(mean) + y(score)) / 2 + 4);
      const value = find(".value", svg);
      value.textContent = near ? "" : number(score, 3);
      value.setAttribute("y", y(score) - 6);
      const shown = find(".null-verdict", figure);
      shown.textContent = `${MARKS[verdict]} ${verdict}`;
      shown.className = `null-verdict t-${verdict.toLowerCase()}`;
      find(".null-range", figure).textContent = `${number(low, 3)} to ${number(high, 3)}`;
    }

    function drawMap(position, predictor, part) {
      root.querySelectorAll(".map tbody tr").forEach((row, i) => {
        row.querySelectorAll("td").forEach((cell, j) => {
          const step = stepAt(data.points[data.index[j + 1][i]], position);
          const here = predictor === 0 ? i === 0 : j + 1 === predictor && i === part;
          cell.className = `v-${step[2].toLowerCase()}${here ? " here" : ""}`;
          cell.title = step[2];
          const mark = find(".mark", cell);
          mark.textContent = MARKS[step[2]];
          mark.setAttribute("aria-label", step[2]);
        });
      });
    }

    function update() {
      const predictor = +find("fieldset input:checked").value;
      const part = +share.value;
      const position = +threshold.value;
      const point = data.points[data.index[predictor][part]];
      const [, nulls, verdict, reason] = stepAt(point, position);
      const label = data.labels[position];
      const percent = `${part * 10}%`;
      find(".share-out").textContent = percent;
      find(".tau-out").textContent = label;
      find(".map-tau").textContent = label;
      share.setAttribute("aria-valuetext", percent);
      threshold.setAttribute("aria-valuetext", label);
      const pill = find(".live-verdict .pill");
      pill.textContent = `${MARKS[verdict]} ${verdict}`;
      pill.className = `pill v-${verdict.toLowerCase()}`;
      const text = reason.replaceAll("{tau}", label);
      find(".why").textContent = `${text[0].toUpperCase()}${text.slice(1)}.`;
      root.querySelectorAll("figure.null").forEach((figure, i) =>
        draw(figure, point.score, point.nulls[i], FULL[nulls[i]], data.taus[position]));
      drawMap(position, predictor, part);
    }

    root.addEventListener("input", update);
    root.querySelectorAll(".controls, .live").forEach((part) => { part.hidden = false; });
    update();
  }

  document.querySelectorAll(".playground").forEach(start);

  // paper cannot be clicked: print what is folded in, and fold it again
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    opened.forEach((part) => { part.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((part) => { part.open = false; }));
})();
