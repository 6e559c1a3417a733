// The page.

const themes = ['auto', 'light', 'dark'];

const themeButton = () => {
  let chosen = 'auto';
  try { chosen = localStorage.getItem('fpbench-theme') ?? 'auto'; } catch { /* a file may have no storage */ }
  const button = el('button', { type: 'button', id: 'theme' });
  const apply = () => {
    if (chosen === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = chosen;
    button.textContent = `Theme: ${chosen}`;
  };
  button.addEventListener('click', () => {
    chosen = themes[(themes.indexOf(chosen) + 1) % themes.length];
    try { localStorage.setItem('fpbench-theme', chosen); } catch { /* as above */ }
    apply();
    redraw();
  });
  if (!themes.includes(chosen)) chosen = 'auto';
  apply();
  return button;
};

const summary = (run) => {
  const counts = new Map();
  for (const status of run.column('status')) counts.set(status || 'not run', (counts.get(status || 'not run') ?? 0) + 1);
  const said = [...counts].map(([status, count]) => `${count.toLocaleString('en')} ${status}`).join(', ');
  const seeds = new Set(run.column('seed')).size;
  const made = run.sessions.at(-1);
  const packages = made?.environment?.packages ?? {};
  const version = packages['fpbench-toolkit'] ?? packages.fpbench;
  return `${many(run.count, 'cell')} (${said}) · ${many(run.combinations.length, 'combination')} · ${many(seeds, 'seed')}`
    + (made ? ` · ${made.started.slice(0, 10)}${version ? ` · fpbench ${version}` : ''}` : '');
};

// The findings of the run, beside what gives groups away: a block for each data set.
const messagesOf = (run) => {
  const drawn = run.figures.find((figure) => figure.name === 'waterfall');
  return run.messages.map(({ scope, scene, things, sentences, waterfall, caption }) => {
    const told = sentences.map((sentence) => el('p', {}, bound(sentence)));
    const verdicts = things.map(([name, verdict, said, tone]) => el('li', {}, el('strong', {}, name), ': ', el('span', { class: `verdict ${tone}` }, verdict), `: ${bound(said)}`));
    const words = el('div', { class: 'says' }, scope ? el('h3', {}, scope) : null, ...(things.length
      ? [el('p', {}, bound(scene)), el('ul', {}, ...verdicts), el('details', {}, el('summary', {}, 'How it was found'), ...told)] : told));
    const chart = waterfall === null || !drawn ? null : figureOf(run, { ...drawn, name: `waterfall${waterfall || ''}`, title: scope ? `${drawn.title}: ${scope}` : drawn.title, panels: [{ ...drawn.panels[waterfall], title: '' }],
      caption: `${caption} Bars are 95 % intervals; the axis does not begin at 0.` });
    return el('div', { class: chart ? 'message drawn' : 'message' }, words, chart);
  });
};

const boardsOf = (run) => {
  run.views = run.boards.map((said, i) => new Board(run, said, i));
  return run.views.length ? viewsOf(run) : [];
};

const cellsOf = (run) => {
  const name = run.path.replace(/[^\w.-]+/g, '_') || 'run';
  return [...losses(run), el('p', { class: 'hint' }, 'Shares are in %; in the downloads they are fractions.'), el('p', { class: 'tools screen-only' },
    el('button', { type: 'button', id: 'save-csv', onclick: () => save(`${name}.csv`, asCsv(run), 'text/csv') }, 'Download CSV'),
    el('button', { type: 'button', id: 'save-json', onclick: () => save(`${name}.json`, asJson(run), 'application/json') }, 'Download JSON')),
  cellTable(run).node];
};

const aboutOf = (run) => {
  const nodes = run.sessions.toReversed().map((session, i) =>
    el('details', { open: i === 0 }, el('summary', {}, `Session ${session.number}, started ${session.started}`), environment(session.environment)));
  if (run.timings.length) {
    nodes.push(el('details', {}, el('summary', {}, 'Mean seconds of a step'), new Table({ caption: 'Mean seconds of a step', key: 'table-time', rows: run.timings.map((_, i) => i), columns: [
      { title: 'step', choose: true, value: (i) => run.timings[i][0] }, { title: 'component', value: (i) => run.timings[i][1] },
      { title: 'seconds', number: true, value: (i) => run.timings[i][2] }] }).node));
  }
  if (run.matrix) nodes.push(el('details', {}, el('summary', {}, 'The matrix file'), el('pre', { tabindex: '0' }, run.matrix)));
  return nodes;
};

// A section without content is left out.
const add = (id, title, nodes) => {
  if (!nodes.length) return;
  one('main').append(el('section', { id, 'aria-labelledby': `${id}-title` }, el('h2', { id: `${id}-title` }, title), ...nodes));
  one('nav ul').append(el('li', {}, el('a', { href: `#${id}` }, title)));
};

// The section in the address did not exist when the page was opened, and drawings above it move it.
const keepInView = (section) => {
  if (!section) return;
  const watch = new ResizeObserver(() => section.scrollIntoView({ behavior: 'instant' }));
  watch.observe(one('main'));
  for (const event of ['wheel', 'touchstart', 'pointerdown', 'keydown']) addEventListener(event, () => watch.disconnect(), { once: true, passive: true });
};

const start = async () => {
  if (!('DecompressionStream' in window)) {
    one('#summary').textContent = 'This browser cannot unpack the data of the report: it needs one of 2023 or later.';
    return;
  }
  const run = new Run(JSON.parse(await packed('data')));
  glossary = run.glossary;
  one('.tools').append(themeButton());
  one('#summary').textContent = summary(run);
  add('message', 'In short', messagesOf(run));
  add('statements', 'Statements', statementsOf(run));
  add('boards', 'Leaderboards', boardsOf(run));
  await 0; // the leaderboards are shown before the rest is created
  add('figures', 'Figures', figuresOf(run));
  add('frontier', 'Trade-offs', explorer(run));
  add('cells', 'All cells', cellsOf(run));
  add('glossary', 'Glossary', glossaryOf(run));
  add('about', 'About this run', aboutOf(run));
  startDetails(run);
  addEventListener('beforeprint', () => {
    for (const node of document.querySelectorAll('#boards details.view, #figures details.rest')) node.all();
    redraw(true);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => redraw());
  document.documentElement.dataset.ready = 'yes';
  if (/^#[a-z]+$/.test(location.hash)) keepInView(one(location.hash));
  drawRest();
};

start().catch((error) => {
  one('#summary').textContent = `The report cannot be shown: ${error.message}`;
  throw error;
});
