"use strict";

const form = document.querySelector("form[data-most]");
form?.addEventListener("submit", (event) => {
  const files = [...form.querySelectorAll("input[type=file]")].flatMap((input) => [...input.files]);
  const size = files.reduce((sum, file) => sum + file.size, 0);
  if (size <= Number(form.dataset.most)) return;
  event.preventDefault();
  document.querySelector("#large").textContent = "The files are too large.";
});

const progress = document.querySelector("#progress");
if (progress) {
  const poll = async () => {
    try {
      const told = await (await fetch(progress.dataset.from)).json();
      if (told.done) return location.reload();
      progress.textContent = told.text;
    } catch {
      progress.textContent = "fpbench app has ended.";
      return;
    }
    setTimeout(poll, 1000);
  };
  setTimeout(poll, 500);
}

const slider = document.querySelector("#step");
if (slider) {
  const steps = [...document.querySelectorAll(".step")];
  const rows = [...document.querySelectorAll("tbody tr")];
  const show = () => {
    const chosen = Number(slider.value);
    steps.forEach((step, number) => { step.hidden = number !== chosen; });
    rows.forEach((row, number) => { row.classList.toggle("chosen", number === chosen); });
    slider.setAttribute("aria-valuetext", steps[chosen].dataset.name);
  };
  slider.closest(".slide").hidden = false;
  slider.addEventListener("input", show);
  show();
}

for (const button of document.querySelectorAll(".print")) {
  button.hidden = false;
  button.addEventListener("click", () => window.print());
}
