// Leaderboards.

// Titles of views, and what they show.
const VIEWS = {
  combinations: ['Every combination', ''],
  attacks: ['Attacks', 'averaged over the models that they attack'],
  defences: ['Defences', 'learners by advantage: accuracy of the best attack minus that of always guessing the largest group'],
  reports: ['Reports', 'fairness reports by the error of their rates, beside what they give away to the best attack; front: no other leaks less at as small an error'],
  audits: ['Audits', 'mechanisms with their policies, by the error of audits that use them'],
};
const OPEN = ['combinations', 'defences', 'reports'];

// Headings and meanings of measures, from the page's data.
let glossary = {};
const titled = (name) => glossary[name]?.heading ?? worded(name);
// Shares are in percent, with a narrow heading: "with, %".
const isShare = (name) => glossary[name]?.unit === 'share';
const written = (name) => (value) => (isShare(name) && typeof value === 'number' && Number.isFinite(value)
  ? (100 * value).toFixed(2).replace(/^-0\.00$/, '0.00').replace('-', '−') : short(value, glossary[name]?.decimals));
const meant = (name) => glossary[name]?.meaning || name;
const direction = (better) => ({ greater: 'more is better', less: 'less is better' }[better] ?? 'neither more nor less is better');

// Formats of shares on a board in percent: the same as in a terminal.
const halfUp = (number, digits) => (Math.floor(Number((number * 10 ** digits).toFixed(4)) + 0.5) / 10 ** digits).toFixed(digits);
const percent = (share) => halfUp(100 * share, 1);
const signedPoints = (share) => {
  const text = halfUp(Math.abs(100 * share), 2);
  return Number(text) === 0 ? text : `${share < 0 ? '−' : '+'}${text}`;
};
const pointsAbove = (share) => (Math.ceil(1e4 * share - 1e-6) / 100).toFixed(2);
const POINTS = { majority_accuracy: percent, without_accuracy: percent, with_accuracy: percent, claim_holds: percent, proven: percent,
  leak: signedPoints, limit: pointsAbove, people_proven: percent, proven_unsure: percent, rate_error: percent,
  cells_published: percent, disparities_visible: percent };

class Board {
  constructor(run, said, number) {
    Object.assign(this, { run, said, number });
    this.measures = Object.fromEntries(Object.entries(said.measures).map(([name, ends]) =>
      [name, Object.fromEntries(Object.entries(ends).map(([end, coded]) => [end, column(coded)]))]));
    this.shown = said.shown;
    const compared = said.labels.slice(0, said.compared); // the last may be a reference
    this.varying = said.kinds.map((_, k) => k).filter((k) => new Set(compared.map((labels) => labels[k])).size > 1
      || (compared.length < said.labels.length && said.kinds[k] === 'adversary'));
    this.rows = said.labels.map((_, i) => i);
    this.name = [said.scope || (said.audits ? 'audits' : ''), ...said.apart].filter(Boolean).join(' · ');
    this.node = el('div', { class: 'board' });
  }

  // Created when it is first opened.
  shownNode() {
    if (!this.table) this.build();
    return this.node;
  }

  build() {
    const { said } = this;
    const ranked = said.rank_by in this.measures;
    const notice = (text, bad) => this.node.append(el('p', { class: bad ? 'notice bad' : 'notice' }, text));
    this.node.append(el('p', { class: 'hint' }, this.describe(ranked)));
    if (said.apart.length) notice(`Ranked apart from lines that are not comparable: these have ${said.apart.join(', ')}.`);
    const counted = (all) => {
      const found = new Map();
      all.forEach((texts) => texts.forEach((text) => found.set(text, (found.get(text) ?? 0) + 1)));
      return found;
    };
    for (const [text, lines] of counted(said.reasons)) notice(`Failed in ${many(lines, 'line')}: ${text}`, true);
    for (const [text, lines] of counted(said.warnings)) notice(`${text} (${many(lines, 'line')})`);
    if (said.done.some((done) => done > 0 && done < 3)) notice('Fewer than 3 seeds give no interval: run more seeds.');
    const what = `${VIEWS[said.view]?.[0] ?? worded(said.view)}${said.scope ? `, ${said.scope}` : ''}`;
    const [group] = said.within.filter((kind) => this.varying.includes(said.kinds.indexOf(kind)));
    this.table = new Table({
      caption: `${what}: means over seeds${ranked ? `, ranked by ${titled(said.rank_by)}` : ''}`, columns: this.columns(), rows: this.rows, key: `board-${this.number}`,
      open: (row, measure) => showLine(this.run, said.of[row], measure ?? said.rank_by, said.labels[row].filter(Boolean).join(' · ')),
      group: group && this.standsInGroups(said.kinds.indexOf(group)) ? group : null, extra: () => this.chooser(),
    });
    this.node.append(this.table.node);
  }

  // What all lines share, and how they are ranked, written once.
  describe(ranked) {
    const { said } = this;
    const shared = said.kinds.map((kind, k) => [kind, said.labels[0]?.[k], k])
      .filter(([, label, k]) => label && !this.varying.includes(k)).map(([kind, label]) => `${kind} ${label}`);
    const seeds = this.seedsAlike() ? `over ${many(said.done[0], 'seed')}` : 'over seeds';
    return [
      `Means ${seeds}${said.in_points ? (said.view === 'reports' ? ', in %' : ', in % of people') : this.shown.some(isShare) ? ', shares in %' : ''}`,
      ranked ? `ranked by ${titled(said.rank_by)} (${direction(glossary[said.rank_by]?.better)})${said.within.length ? ` for each ${said.within.join(' and ')}` : ''}` : '',
      shared.length ? `all with ${shared.join(', ')}` : '', ...said.notes,
    ].filter(Boolean).join('; ').concat('.');
  }

  // Whether every line has all its planned seeds, and the same number as the others.
  seedsAlike() {
    const { said } = this;
    return said.done.every((done, i) => done === said.done[0] && !said.failed[i] && this.planned(i) === done);
  }

  // Whether the lines of a label are adjacent, so that it may be written above them.
  standsInGroups(k) {
    const labels = this.said.labels.map((each) => each[k]);
    return labels.filter((label, i) => label !== labels[i - 1]).length === new Set(labels).size;
  }

  columns() {
    const { said } = this;
    const grouped = said.within.map((kind) => said.kinds.indexOf(kind));
    const ranks = said.rank.map((rank, i) => JSON.stringify([rank, ...grouped.map((k) => said.labels[i][k])]));
    const counts = new Map();
    ranks.forEach((rank) => counts.set(rank, (counts.get(rank) ?? 0) + 1));
    const place = { title: '#', number: true, first: true, value: (i) => said.rank[i],
      text: (i) => (said.rank[i] === null ? '–' : `${counts.get(ranks[i]) > 1 ? '=' : ''}${said.rank[i]}`) };
    const labels = this.varying.map((k) => ({
      title: said.kinds[k], choose: true, value: (i) => said.labels[i][k], hint: this.run.summaries[said.kinds[k]],
      text: (i) => said.labels[i][k] || (said.kinds[k] === 'mechanism' && this.isPrivate(i) ? 'its own' : '–'),
    }));
    const found = [place, ...labels];
    // The ranking measure comes first: a phone shows no more. Percent are read from left to right.
    const names = said.in_points ? this.shown : [...this.shown].sort((a, b) => (b === said.rank_by) - (a === said.rank_by));
    for (const name of names) {
      const { mean, low, high } = this.measures[name];
      const write = (said.in_points && POINTS[name]) || (isShare(name) || (glossary[name]?.decimals ?? 4) !== 4 ? written(name) : short);
      found.push({
        title: titled(name), measure: name, number: true, hint: meant(name), value: (i) => mean[i],
        ...(write === short ? {} : { text: (i) => (mean[i] === null || mean[i] === undefined ? '–' : write(mean[i])) }),
        tip: (i) => (low[i] === null || low[i] === undefined ? null : `95 %: ${write(low[i])} to ${write(high[i])}`),
      });
      if (name === said.rank_by && !said.in_points) found.push(this.interval(name, isShare(name) ? written(name) : null));
    }
    if (said.in_points) {
      for (const name of new Set(['leak', said.rank_by])) if (names.includes(name)) found.push(this.interval(name, POINTS[name] ?? written(name)));
    }
    if (!this.seedsAlike()) {
      found.push({
        title: 'seeds', number: true, value: (i) => said.done[i],
        text: (i) => (this.planned(i) > said.done[i] ? `${said.done[i]} of ${this.planned(i)}` : String(said.done[i])),
        tone: (i) => (said.failed[i] ? 'failed' : this.planned(i) > said.done[i] ? 'skipped' : ''),
      });
    }
    return found;
  }

  // Whether the audits of a line are private: without a mechanism, their auditor adds the noise.
  isPrivate(i) {
    return this.measures.epsilon?.mean[i] > 0;
  }

  // Planned seeds of a line; for means over several combinations, only the seeds that were run are known.
  planned(i) {
    const { run, said } = this;
    const ran = said.done[i] + said.failed[i];
    if (said.view !== 'combinations' || said.of[i].length !== 1) return ran;
    return run.rowsOf[said.of[i][0]].filter((row) => run.value('status', row) !== 'skipped').length;
  }

  // The interval, with a drawing below on one scale for the whole table.
  interval(name, write = null) {
    const { mean, low, high } = this.measures[name];
    const ends = [...mean, ...low, ...high].filter((x) => typeof x === 'number' && Number.isFinite(x));
    const [first, most] = ends.reduce(([a, b], x) => [Math.min(a, x), Math.max(b, x)], [Infinity, -Infinity]);
    const least = first > 0 && first < 0.4 * most ? 0 : first; // 0 is shown if it is near
    const at = (x) => `${((x - least) / (most - least || 1) * 100).toFixed(2)}%`;
    const format = write ?? alike(ends);
    const text = (i) => (low[i] === null || low[i] === undefined ? '–' : `${format(low[i])} to ${format(high[i])}`);
    return {
      title: name === this.said.rank_by ? '95 % interval' : `95 % of ${titled(name)}`, number: true, measure: name, value: (i) => low[i] ?? null, text,
      node: (i) => {
        if (mean[i] === null || mean[i] === undefined) return '–';
        const box = el('span', { class: 'wisker', 'aria-hidden': 'true' });
        if (least < 0 && most > 0) box.append(styled('u', { left: at(0) }));
        if (text(i) !== '–') box.append(styled('i', { left: at(low[i]), right: `calc(100% - ${at(high[i])})` }));
        box.append(styled('b', { left: at(mean[i]) }));
        return el('span', { class: 'ends' }, text(i), box);
      },
    };
  }

  chooser() {
    const boxes = Object.keys(this.measures).map((name) => {
      const box = el('input', { type: 'checkbox', checked: this.shown.includes(name), onchange: () => {
        this.shown = Object.keys(this.measures).filter((n) => (n === name ? box.checked : this.shown.includes(n)));
        this.table.columns = this.columns();
        this.table.order = null;
        this.table.arrange();
        this.table.refresh();
      } });
      return el('label', {}, box, titled(name));
    });
    return el('fieldset', { class: 'chooser' }, el('legend', {}, 'Columns'), el('div', {}, ...boxes));
  }
}

const viewsOf = (run) => {
  const names = [...new Set(run.boards.map((said) => said.view))];
  return names.map((name) => {
    const boards = run.views.filter((board) => board.said.view === name);
    const [title, about] = VIEWS[name] ?? [worded(name), ''];
    const place = el('div');
    const show = (board) => place.replaceChildren(board.shownNode());
    const select = boards.length > 1 ? el('div', { class: 'filters' }, el('label', {}, 'Leaderboard of', el('select', { onchange: (event) => show(boards[event.target.value]) },
      ...boards.map((board, i) => el('option', { value: i }, board.name || 'all others'))))) : null;
    const inner = el('details', { class: 'view', open: OPEN.includes(name) || names.length === 1, id: `view-${name}` },
      el('summary', {}, el('h3', {}, title), about ? el('span', { class: 'what' }, about) : null), select, place);
    const first = () => { if (inner.open && !place.childElementCount) show(boards[0]); };
    inner.addEventListener('toggle', first);
    first();
    inner.all = () => {
      inner.open = true;
      place.replaceChildren(...boards.map((board) => { const node = board.shownNode(); board.table.all(); return node; }));
    };
    return inner;
  });
};

const styled = (tag, style) => {
  const node = el(tag);
  Object.assign(node.style, style); // as properties: a policy may forbid style attributes
  return node;
};
