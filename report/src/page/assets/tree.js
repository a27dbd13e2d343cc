// Tree of branches: rows, depths, paths and filters, as typed arrays.
Everett.tree = (() => {
  const { data } = Everett;
  const columns = data.tree;
  const count = columns.from.length;
  const from = Int32Array.from(columns.from);
  const begin = Float64Array.from(columns.begin_ns);
  // length_ns includes checks. They run on a continuation that is thrown away, so a branch ends with its segment.
  const end = begin.map((at, n) => at + Math.min(columns.length_ns[n], columns.segment_ns));
  const found = new Uint8Array(count);
  const findings = new Map();
  for (const [branch, id] of columns.findings) {
    found[branch] = 1;
    if (!findings.has(branch)) findings.set(branch, []);
    findings.get(branch).push(id);
  }
  // Novelty in four levels, as in the static drawing.
  const level = new Uint8Array(count);
  columns.new_points.forEach((points, n) => (level[n] = points >= 100 ? 4 : points >= 10 ? 3 : points > 0 ? 2 : 1));

  // Children of each branch in the order of their numbers, as linked lists.
  const first = new Int32Array(count).fill(-1);
  const next = new Int32Array(count).fill(-1);
  const last = new Int32Array(count).fill(-1);
  const roots = [];
  for (let n = 0; n < count; n++) {
    const parent = from[n];
    if (parent < 0 || parent >= n) { roots.push(n); continue; }
    if (last[parent] < 0) first[parent] = n; else next[last[parent]] = n;
    last[parent] = n;
  }
  // A first child continues its parent's row. Every other child begins a new row.
  const row = new Int32Array(count);
  let rows = 0;
  const stack = [];
  for (const root of roots) {
    stack.push(root);
    while (stack.length > 0) {
      const n = stack.pop();
      const parent = from[n];
      row[n] = parent >= 0 && parent < n && first[parent] === n ? row[parent] : rows++;
      const children = [];
      for (let child = first[n]; child >= 0; child = next[child]) children.push(child);
      for (let i = children.length - 1; i >= 0; i--) stack.push(children[i]);
    }
  }
  // Branches, sorted by row.
  const starts = new Int32Array(rows + 1);
  for (let n = 0; n < count; n++) starts[row[n] + 1]++;
  for (let r = 0; r < rows; r++) starts[r + 1] += starts[r];
  const byRow = new Int32Array(count);
  const fill = starts.slice();
  for (let n = 0; n < count; n++) byRow[fill[row[n]]++] = n;

  function way(branch) {
    const all = [];
    for (let n = branch; n >= 0; n = from[n]) all.push(n);
    return all.reverse();
  }
  // The sums can exceed 2^53, so they are computed as BigInt.
  const path = (branch) =>
    way(branch).map((n) => BigInt(columns.root_ns) + BigInt(columns.begin_ns[n]) + "." + columns.child[n]).join("/");
  const plans = new Map(columns.plans);
  const kinds = (branch) => columns.fault_kinds.filter((_, bit) => (columns.kinds[branch] >>> bit) & 1);
  const children = (branch) => {
    const all = [];
    for (let child = first[branch]; child >= 0; child = next[child]) all.push(child);
    return all;
  };

  // Returns the branches that a filter selects, and their number.
  function select({ show, fault, fresh }) {
    const chosen = new Uint8Array(count);
    let number = 0;
    const id = /^f\d+$/.test(show) ? Number(show.slice(1)) : 0;
    for (let n = 0; n < count; n++) {
      const flags = columns.flags[n];
      const fits =
        (show === "all" || (show === "found" && found[n]) || (show === "checked" && flags & 2) || (show === "broken" && flags & 4) ||
          (id > 0 && found[n] && findings.get(n).includes(id))) &&
        (fault === "" || (columns.kinds[n] >>> Number(fault)) & 1) && columns.new_points[n] >= fresh;
      if (fits) { chosen[n] = 1; number++; }
    }
    return { chosen, number, all: number === count };
  }
  return { columns, count, rows, from, begin, end, row, level, found, findings, starts, byRow, path, way, kinds, plans, children, roots, select, horizon: columns.horizon_ns || 1 };
})();
