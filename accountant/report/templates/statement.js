
(function () {
  "use strict";
  var rows = Array.prototype.slice.call(document.querySelectorAll("#table tbody tr"));
  var slider = document.getElementById("delta");
  var answer = document.getElementById("answer");
  var chart = document.querySelector("#profile svg");
  var dot = document.createElementNS("http://www.w3.org/2000/svg", "circle");
  dot.setAttribute("class", "dot first");
  dot.setAttribute("r", "5");
  dot.setAttribute("id", "dot");
  chart.appendChild(dot);
  function show() {
    var row = rows[Number(slider.value)];
    var told = row.dataset.upper === "\u221e"
      ? "no finite \u03b5 is known"
      : "\u03b5 \u2264 " + row.dataset.upper + " (and \u2265 " + row.dataset.lower + ")";
    answer.textContent = "\u03b4 = " + row.dataset.delta + ": " + told;
    slider.setAttribute("aria-valuetext", answer.textContent);
    rows.forEach(function (each) { each.classList.toggle("chosen", each === row); });
    dot.setAttribute("visibility", row.dataset.x ? "visible" : "hidden");
    if (row.dataset.x) {
      dot.setAttribute("cx", row.dataset.x);
      dot.setAttribute("cy", row.dataset.y);
    }
  }
  slider.addEventListener("input", show);
  document.getElementById("control").hidden = false;
  show();
})();
