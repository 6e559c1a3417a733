// Every cell of the run, whatever its status.

const cellTable = (run) => {
  const used = run.kinds.filter((kind) => run.combinations.some((labels) => labels[run.at[kind]]));
  const varying = used.filter((kind) => new Set(run.combinations.map((labels) => labels[run.at[kind]])).size > 1);
  // The measures of leaderboards, ranking measures first.
  const shown = [...run.boards.map((said) => said.rank_by), ...run.boards.flatMap((said) => said.shown.toReversed())];
  const measures = [...new Set(shown)].filter((name) => run.names.includes(name) && name !== 'seconds').slice(0, 6);
  const columns = [
    { title: 'seed', number: true, first: true, value: (row) => run.value('seed', row), text: (row) => String(run.value('seed', row)) },
    ...varying.map((kind) => ({
      title: kind, choose: true, value: (row) => run.label(run.of[row], kind),
      text: (row) => run.label(run.of[row], kind) || '–',
    })),
    { title: 'status', choose: true, value: (row) => run.value('status', row) || 'not run',
      text: (row) => run.value('status', row) || 'not run', tone: (row) => run.value('status', row) },
    ...measures.map((name) => ({ title: titled(name), hint: meant(name), measure: name, number: true, value: (row) => run.value(name, row),
      ...(isShare(name) ? { text: (row) => written(name)(run.value(name, row)) } : {}) })),
    { title: 'seconds', number: true, value: (row) => run.value('seconds', row) },
  ];
  const reasons = run.column('reason');
  if (reasons.some(Boolean)) columns.push({ title: 'reason', value: (row) => reasons[row], text: (row) => reasons[row] ?? '' });
  return new Table({
    caption: 'All cells of the run', columns, rows: run.of.map((_, i) => i), key: 'table-cells', first: 20,
    open: (row, measure) => showCell(run, row, measure),
  });
};

// The status of the cells that are not done, with reasons.
const losses = (run) => {
  const counts = new Map();
  run.column('status').forEach((status, row) => {
    if (status === 'done') return;
    const text = status ? `${status}: ${run.value('reason', row) ?? 'unknown reason'}` : 'not run yet';
    const said = counts.get(text) ?? { count: 0, bad: status === 'failed' };
    said.count++;
    counts.set(text, said);
  });
  return [...counts].map(([text, { count, bad }]) => el('p', { class: bad ? 'notice bad' : 'notice' }, `${many(count, 'cell')} ${text}`));
};
