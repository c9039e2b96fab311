// Collections, templates, and a debounced function.
(async () => {
  const people = [{ n: "x", a: 3 }, { n: "y", a: 1 }, { n: "z", a: 3 }];
  let calls = 0;
  const debounced = _.debounce(() => ++calls, 200, { maxWait: 1000 });
  for (let i = 0; i < 5; i++) {
    debounced();
    await new Promise((done) => setTimeout(done, 50));
  }
  await new Promise((done) => setTimeout(done, 500));
  const throttled = _.throttle(() => calls++, 100);
  throttled(); throttled(); throttled();
  await new Promise((done) => setTimeout(done, 300));
  return {
    calls,
    grouped: _.groupBy(people, "a"), sorted: _.orderBy(people, ["a", "n"], ["desc", "desc"]), chunks: _.chunk(_.range(7), 3),
    merged: _.merge({ a: { b: [1, { c: 1 }] } }, { a: { b: [2, { d: 2 }] } }), deep: _.cloneDeep({ m: new Map([[1, new Date(0)]]) }).m.get(1).getTime(),
    equal: _.isEqual(new Set([1, { a: 1 }]), new Set([1, { a: 1 }])), path: _.get({ a: [{ b: 5 }] }, "a[0].b"),
    text: _.template("<% people.forEach(p => { %><b><%- p.n %></b><% }) %>")({ people }), words: [_.camelCase("foo-bar baz"), _.kebabCase("fooBar"), _.deburr("déjà")],
  };
})()
