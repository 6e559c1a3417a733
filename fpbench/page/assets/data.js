// The data that the page carries: compressed JSON, its rows as columns.

const packed = async (id) => {
  const node = document.getElementById(id);
  const text = atob(node.textContent);
  node.remove();
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).text();
};

// Values that JSON cannot represent: NaN and infinity become numbers again, too long ones stay digits.
const plain = (value) => {
  if (value === null || typeof value !== 'object' || !('is' in value)) return value;
  const word = { nan: NaN, inf: Infinity, '-inf': -Infinity }[value.is];
  return word === undefined ? value.is : word;
};

const column = (coded) => {
  if (coded.all) return coded.all.map(plain);
  const values = coded.of.map(plain);
  return coded.at.map((i) => values[i]);
};

class Run {
  constructor(said) {
    Object.assign(this, said);
    this.count = said.cells.count;
    this.of = column(said.cells.combination);
    this.madeIn = column(said.cells.session);
    this.names = Object.keys(said.cells.columns);
    this.decoded = new Map();
    this.rowsOf = said.combinations.map(() => []);
    this.of.forEach((combination, row) => this.rowsOf[combination].push(row));
    this.at = Object.fromEntries(said.kinds.map((kind, i) => [kind, i]));
  }

  // A measure of all cells; decoded at the first request.
  column(name) {
    if (!this.decoded.has(name)) this.decoded.set(name, column(this.cells.columns[name]));
    return this.decoded.get(name);
  }

  value(name, row) {
    return name in this.cells.columns ? this.column(name)[row] : null;
  }

  label(combination, kind) {
    return this.combinations[combination][this.at[kind]];
  }

  labels(combination) {
    return this.kinds
      .map((kind) => [kind, this.label(combination, kind)])
      .filter(([, label]) => label);
  }

  // Mean and standard deviation over the done seeds of a combination.
  spread(name, combination) {
    const found = this.rowsOf[combination]
      .filter((row) => this.value('status', row) === 'done')
      .map((row) => this.value(name, row))
      .filter((value) => (typeof value === 'number' && Number.isFinite(value)) || typeof value === 'boolean')
      .map(Number);
    if (!found.length) return null;
    const mean = found.reduce((a, b) => a + b, 0) / found.length;
    const square = found.reduce((sum, x) => sum + (x - mean) ** 2, 0);
    return { mean, count: found.length, deviation: found.length > 1 ? Math.sqrt(square / (found.length - 1)) : null };
  }

  // The rows as objects for the export, labels included.
  row(i) {
    const [cell, ...others] = this.names;
    const made = { [cell]: this.value(cell, i) };
    for (const kind of this.kinds) made[kind] = this.label(this.of[i], kind);
    for (const name of others) made[name] = this.value(name, i);
    made.status ||= 'not run';
    return made;
  }
}

const asCsv = (run) => {
  const field = (value) => {
    if (value === null || value === undefined || Number.isNaN(value)) return '';
    // As pandas writes them; a label may say "true" or "constructor".
    const text = typeof value === 'string' ? value : { true: 'True', false: 'False', Infinity: 'inf', '-Infinity': '-inf' }[value] ?? String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const [cell, ...others] = run.names;
  const lines = [[cell, ...run.kinds, ...others].map(field).join(',')];
  for (let i = 0; i < run.count; i++) lines.push(Object.values(run.row(i)).map(field).join(','));
  return lines.join('\n') + '\n';
};

const asJson = (run) => {
  const rows = [];
  for (let i = 0; i < run.count; i++) rows.push(JSON.stringify(run.row(i)));
  return `[\n${rows.join(',\n')}\n]\n`;
};
