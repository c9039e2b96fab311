// Touches whatever the engine reads from the system once: random seed, clock and zone, locale data, memory map.
Math.random();
new Date(2020, 1, 1).toLocaleString();
new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" }).format(1234.5);
new Intl.DateTimeFormat("en-US", { dateStyle: "full", timeStyle: "long", timeZone: "UTC" }).format(0);
new Intl.Collator("en-US").compare("a", "b");
/(\p{L}+)\s(?<year>\d{4})/u.exec("May 2020");
"x".normalize("NFC").localeCompare("y");
new Float64Array(1024).fill(1);
JSON.parse(JSON.stringify({ a: [1n.toString(), new Map([[1, 2]]).size] }));
Promise.resolve(1).then((value) => value);
true;
