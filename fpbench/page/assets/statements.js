// The statements of a paper, and whether our numbers agree.

const SIGNS = { holds: ['✓', 'good'], matched: ['✓', 'good'], 'holds under conditions': ['◑', 'warn'], undecided: ['?', 'warn'],
  'holds in few cases': ['◔', 'bad'], 'does not hold': ['✗', 'bad'], deviates: ['✗', 'bad'] };
const verdict = (words) => {
  const [sign, tone] = SIGNS[words] ?? ['–', 'dim'];
  return el('span', { class: `verdict ${tone}` }, el('span', { 'aria-hidden': 'true' }, `${sign} `), words);
};

// Numbers in the style of the page: a terminal leaves out the zero.
const fully = (text) => text.replace(/([<>]=?) /g, '$1\u00a0').replace(/(^|[^\d.])(-?)\.(\d)/g, '$1$20.$3').replace(/(^|\s)-(\d)/g, '$1−$2');

const printed = ({ columns, rows }, caption) => simple(caption, columns, rows.map((cells) => ({
  cells: cells.map((cell, i) => (columns[i][0] === '' && cell in SIGNS ? verdict(cell) : columns[i][1] || columns[i][0] === 'note' ? fully(cell) : cell)) })));

const showStatement = (line) => sheet(line.says,
  el('p', { class: 'shown' }, verdict(line.standing), ` in ${line.matched} of ${many(line.run, 'check')}`),
  el('p', { class: 'hint' }, fully(`${line.source}. ${line.table.about}`)), printed(line.table, 'Checks of this statement'));

const statementsOf = (run) => {
  if (!run.statements) return [];
  const { lines, tables } = run.statements;
  const nodes = [...new Set(lines.map((line) => line.among))].flatMap((among, i) => {
    const mine = lines.filter((line) => line.among === among);
    const columns = [
      { title: 'verdict', choose: true, value: (j) => mine[j].standing, text: (j) => mine[j].standing, node: (j) => verdict(mine[j].standing) },
      { title: 'statement', kind: 'prose', value: (j) => mine[j].says, text: (j) => `${mine[j].says} ${mine[j].source}`,
        node: (j) => el('span', {}, mine[j].says, ' ', el('span', { class: 'source' }, mine[j].source)) },
      { title: 'matched', number: true, value: (j) => mine[j].matched / mine[j].run, text: (j) => (mine[j].run ? `${mine[j].matched} of ${mine[j].run}` : '–') },
      { title: 'ours', number: true, value: (j) => parseFloat(mine[j].ours), text: (j) => fully(mine[j].ours.replace(/^-$/, '–')) },
      { title: 'of', kind: 'prose', value: (j) => mine[j].quantity, text: (j) => fully(`${mine[j].quantity}; stated: ${mine[j].stated}${mine[j].tolerance ? ` ± ${mine[j].tolerance}` : ''}`) },
    ];
    return [among ? el('h3', {}, `Statements ${among}`) : null,
      new Table({ caption: `Statements ${among || 'of the matrix'}`, columns, rows: mine.map((_, j) => j), key: `table-statements-${i}`, open: (j) => showStatement(mine[j]) }).node];
  });
  const papers = tables.map((table, i) => el('details', { class: 'view' }, el('summary', {}, el('h3', {}, `Table${tables.length > 1 ? ` ${i + 1}` : ''} of the paper, from our rows`)),
    el('p', { class: 'hint' }, [table.title === run.title ? '' : table.title, table.about, ...table.remarks].filter(Boolean).join(' · ')), printed(table, table.title || 'Table of the paper')));
  return [...nodes, ...papers].filter(Boolean);
};
