// Meanings of the words of the page: headings, measures, components.

const measureEntry = (name) => [titled(name), [glossary[name].meaning || 'a measure that no component of this installation describes',
  glossary[name].better === 'neither' ? '' : direction(glossary[name].better)].filter(Boolean).join('; '), titled(name) === name ? '' : name];

const list = (entries) => el('dl', { class: 'words' }, ...entries.map(([word, meaning, code]) =>
  el('div', {}, el('dt', {}, word, code ? el('code', {}, code) : null), el('dd', {}, meaning))));

const byWord = new Intl.Collator('en', { numeric: true });

const glossaryOf = (run) => {
  const looked = new Set([...run.boards.flatMap((said) => [said.rank_by, ...said.shown]), ...run.fronts.flatMap((one) => one.objectives), 'seconds']);
  const known = Object.keys(glossary).sort((a, b) => byWord.compare(titled(a), titled(b)));
  const headings = Object.entries(HEADINGS).map(([word, meaning]) => [word, meaning, '']);
  const kinds = run.kinds.filter((kind) => Object.keys(run.components[kind] ?? {}).length);
  const others = known.filter((name) => !looked.has(name));
  const parts = kinds.flatMap((kind) => {
    const uses = new Map(Object.entries(run.components[kind]).map(([label, { use, summary }]) => [use, { label, summary }]));
    return [[kind, run.summaries[kind], ''], ...[...uses].map(([use, { label, summary }]) => [uses.size === 1 && label !== use ? label : use, summary || 'not installed here', ''])];
  });
  return [
    el('p', { class: 'hint' }, 'Names in code style are columns of the downloads.'),
    el('h3', {}, 'Columns and measures'), list([...headings, ...known.filter((name) => looked.has(name)).map(measureEntry)]),
    el('h3', {}, 'Components'), list(parts),
    others.length ? el('details', {}, el('summary', {}, `${many(others.length, 'more measure')} of the cells`), list(others.map(measureEntry))) : null,
  ].filter(Boolean);
};
