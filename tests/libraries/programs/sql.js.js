// A database in WebAssembly: tables, a recursive query, a window function, a function of one's own, and a file.
(async () => {
  const SQL = await initSqlJs({ wasmBinary: Uint8Array.from(atob(wasmBase64), (character) => character.charCodeAt(0)) });
  const db = new SQL.Database();
  db.run("create table sales (day text, kind text, amount real)");
  const insert = db.prepare("insert into sales values (?, ?, ?)");
  for (let i = 0; i < 200; i++) insert.run([`2024-01-${String((i % 28) + 1).padStart(2, "0")}`, "abé"[i % 3], (i * 7) % 50]);
  insert.free();
  db.create_function("twice", (x) => 2 * x);
  const file = db.export();
  const again = new SQL.Database(file);
  let error;
  try { db.exec("select nothing from nowhere"); } catch (thrown) { error = thrown.message; }
  return {
    sums: db.exec("select kind, count(*), sum(twice(amount)), avg(amount) from sales group by kind order by kind"),
    series: db.exec("with recursive n(i) as (select 1 union all select i + 1 from n where i < 10) select group_concat(i * i) from n")[0].values,
    window: db.exec("select day, sum(amount) over (order by day) from (select day, sum(amount) amount from sales group by day) limit 5")[0].values,
    again: again.exec("select count(*), max(kind) from sales")[0].values, size: file.length, header: new TextDecoder().decode(file.subarray(0, 15)), error,
  };
})()
