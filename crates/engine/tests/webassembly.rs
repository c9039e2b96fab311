//! A module of the host's beside a guest that has no `WebAssembly`.

mod guest;
mod wasm;

use guest::{Guest, number, object, string};
use pydeno_engine::{Engine, EvalLimits, Features, HostFunction, Isolate, IsolateOptions, Tier, WebAssembly};
use pydeno_wire::message::{
    Failure, HostError, WasmExport, WasmExportKind, WasmImport, WasmModule, WasmNumber,
};
use pydeno_wire::{BigInt, Value};

fn guest(webassembly: WebAssembly) -> Guest {
    let engine = Engine::load().expect("the tests need JavaScriptCore");
    engine.configure(Features { tier: Tier::Off, webassembly: true });
    let options = IsolateOptions { webassembly, ..IsolateOptions::default() };
    Guest::of(Isolate::new(engine, &options).expect("an isolate can be made"))
}

fn host() -> Guest {
    guest(WebAssembly::Host)
}

fn export(name: &str, kind: WasmExportKind) -> WasmExport {
    WasmExport { name: name.into(), kind }
}

fn function(name: &str, parameters: &[WasmNumber]) -> WasmExport {
    export(name, WasmExportKind::Function(parameters.to_vec()))
}

fn import(name: &str, result: Option<WasmNumber>) -> WasmImport {
    WasmImport { module: "env".into(), name: name.into(), result }
}

fn load(guest: &Guest, module: &WasmModule, functions: Vec<HostFunction>) -> Result<Value, Failure> {
    guest.0.begin_load_wasm(u64::MAX, module, functions, &EvalLimits::default());
    let (request, outcome) = guest.ended();
    assert_eq!(request, u64::MAX);
    outcome
}

fn alone(code: Vec<u8>, exports: Vec<WasmExport>) -> WasmModule {
    WasmModule { name: "lib".into(), code, imports: Vec::new(), exports }
}

fn echo() -> HostFunction {
    Box::new(|_, mut arguments| Ok(arguments.remove(0)))
}

/// [`wasm::kitchen_sink`] under the name `lib`.
fn kitchen_sink() -> WasmModule {
    use WasmNumber::{F64, I32, I64};
    WasmModule {
        imports: vec![import("f", Some(I32)), import("g", Some(I64))],
        ..alone(
            wasm::kitchen_sink(),
            vec![
                function("add", &[I32, I32]),
                function("wide", &[I64]),
                function("half", &[F64]),
                function("pair", &[]),
                function("load", &[I32]),
                function("store", &[I32, I32]),
                function("unreachable", &[]),
                function("divide", &[I32, I32]),
                function("again", &[]),
                function("grow", &[I32]),
                function("throw", &[]),
                function("callF", &[I32]),
                function("callG", &[I64]),
                export("memory", WasmExportKind::Memory),
                export("const", WasmExportKind::Constant),
            ],
        )
    }
}

fn with_kitchen_sink() -> Guest {
    let guest = host();
    load(&guest, &kitchen_sink(), vec![echo(), echo()]).expect("it loads");
    guest
}

#[test]
fn numbers_go_in_and_come_out() {
    let guest = with_kitchen_sink();
    assert_eq!(guest.value("lib.add(2, 40)"), number(42.0));
    assert_eq!(guest.value("lib.add(2 ** 31 - 1, 1)"), number(-2_147_483_648.0));
    assert_eq!(guest.value("String(lib.wide(41n)) + typeof lib.wide(1n)"), string("42bigint"));
    assert_eq!(guest.value("lib.wide(41)"), Value::BigInt(BigInt::new(false, vec![42])));
    assert_eq!(guest.value("lib.half(3)"), number(1.5));
    assert_eq!(guest.value("lib.pair().map(String).join()"), string("1,2"));
    assert_eq!(guest.value("lib.const"), number(42.0));
    assert_eq!(guest.value("lib.store(8, 7) === undefined && lib.load(8)"), number(7.0));
    assert_eq!(guest.value("[lib.callF(5), lib.callG(6n)].map(String).join()"), string("5,6"));
}

#[test]
fn its_value_is_the_object_that_the_guest_has() {
    let guest = host();
    let loaded = load(&guest, &kitchen_sink(), vec![echo(), echo()]).expect("it loads");
    let Value::Object(exports) = &loaded else { panic!("not an object: {loaded:?}") };
    assert_eq!(exports.len(), 15);
    let (_, add) = exports.iter().find(|(name, _)| *name == "add").expect("it is there");
    guest.value("globalThis.lib = {add: () => 0}");
    assert_eq!(guest.call(add, &[number(2.0), number(3.0)]), Ok(number(5.0)));
}

#[test]
fn functions_look_like_native_ones_and_the_object_does_not_change() {
    let guest = with_kitchen_sink();
    assert_eq!(
        guest.value("[lib.add.name, lib.add.length, lib.memory.read.name].join()"),
        string("add,2,read")
    );
    assert_eq!(guest.value("/native code/.test(lib.add)"), Value::Bool(true));
    assert_eq!(guest.error("new lib.add(1, 2)").name, "TypeError");
    guest.value("lib.add = 5; delete lib.add; lib.memory.read = 5; lib.other = 5");
    assert_eq!(guest.value("lib.add(1, 1) + lib.memory.read(0, 1).length"), number(3.0));
    assert_eq!(guest.value("'other' in lib"), Value::Bool(false));
    assert_eq!(guest.value("Object.keys(globalThis).includes('lib')"), Value::Bool(false), "like a binding");
}

#[test]
fn what_is_no_number_is_refused_and_runs_nothing() {
    let guest = with_kitchen_sink();
    guest.value("globalThis.ran = 0; globalThis.odd = {valueOf() { ran++; return 1 }, [Symbol.toPrimitive]() { ran++; return 1 }}");
    guest.value(
        "Object.defineProperty(Array.prototype, 1, {get() { ran++; return 1 }, configurable: true}); 0",
    );
    for call in [
        "lib.add(odd, 1)",
        "lib.add('1', 1)",
        "lib.add(1n, 1)",
        "lib.add(1)",
        "lib.add(null, 1)",
        "lib.wide('1')",
        "lib.wide(0.5)",
        "lib.wide(2 ** 60)",
    ] {
        assert_eq!(guest.error(call).name, "TypeError", "{call}");
    }
    let told = guest.error("lib.add(1, 'x')").message;
    assert_eq!(told, "argument 2 of lib.add must be a number");
    assert_eq!(guest.value("ran"), number(0.0));
    assert_eq!(guest.value("Math.max(odd); ran"), number(1.0), "a control: coercing runs it");
}

/// `f0` to `f6`: each takes so many numbers and returns the last of them.
fn of_every_length() -> WasmModule {
    use WasmNumber::{F64, I64};
    let names = ["f0", "f1", "f2", "f3", "f4", "f5", "f6"];
    let parameters = [wasm::F64, wasm::I64, wasm::F64, wasm::I64, wasm::F64, wasm::I64];
    let last: [&[u8]; 7] =
        [&[0x42, 0], &[0x20, 0], &[0x20, 1], &[0x20, 2], &[0x20, 3], &[0x20, 4], &[0x20, 5]];
    let functions: Vec<wasm::Function<'_>> = (0..names.len())
        .map(|count| wasm::Function {
            name: names[count],
            parameters: &parameters[..count],
            results: if count == 0 { &[wasm::I64] } else { &parameters[count - 1..count] },
            code: last[count],
        })
        .collect();
    let types = [F64, I64, F64, I64, F64, I64];
    let exports = names.iter().enumerate().map(|(count, name)| function(name, &types[..count]));
    alone(wasm::module(&[], &functions, &[]), exports.collect())
}

#[test]
fn functions_of_any_number_of_parameters_check_each_of_them() {
    let guest = host();
    load(&guest, &of_every_length(), vec![]).expect("it loads");
    for count in 1..7_usize {
        let given: Vec<String> =
            (1..=count).map(|i| if i % 2 == 0 { format!("{i}n") } else { i.to_string() }).collect();
        let call = |given: &[String]| format!("String(lib.f{count}({}))", given.join(", "));
        assert_eq!(guest.value(&call(&given)), string(&count.to_string()));
        assert_eq!(guest.value(&format!("lib.f{count}.length")), number(count as f64));
        for position in 0..count {
            let mut wrong = given.clone();
            wrong[position] = "'1'".to_owned();
            let told = guest.error(&call(&wrong)).message.to_string_lossy().into_owned();
            assert!(
                told.starts_with(&format!("argument {} of lib.f{count} must be a", position + 1)),
                "{told}"
            );
            let error = guest.error(&call(&given[..position]));
            assert_eq!(error.name, "TypeError", "one that is missing is no number");
        }
        let more = [given, vec!["'more'".to_owned()]].concat();
        assert_eq!(
            guest.value(&call(&more)),
            string(&count.to_string()),
            "what is too much is not looked at"
        );
    }
    assert_eq!(guest.value("String(lib.f0(1))"), string("0"));
    guest.eval(POISON).expect("it poisons");
    assert_eq!(guest.value("try { lib.f4(1) } catch {} try { lib.f6(1) } catch {} got.length"), number(0.0));
}

#[test]
fn memory_is_copied_out_and_in() {
    let guest = with_kitchen_sink();
    assert_eq!(guest.value("lib.memory.size()"), number(65536.0));
    guest.value("lib.memory.write(4, new Uint8Array([1, 2, 3])); globalThis.copy = lib.memory.read(4, 3); copy.fill(9)");
    assert_eq!(
        guest.value("lib.memory.read(4, 3)"),
        Value::Bytes(vec![1, 2, 3]),
        "a copy was changed, not it"
    );
    guest.value("lib.memory.write(8, new DataView(new Uint8Array([7, 8, 9]).buffer, 1))");
    guest.value("lib.memory.write(10, new Uint16Array([0x0201]))");
    guest.value("lib.memory.write(12, new Uint8Array([5]).buffer)");
    assert_eq!(guest.value("lib.memory.read(8, 5)"), Value::Bytes(vec![8, 9, 1, 2, 5]));
    assert_eq!(guest.value("lib.grow(1); lib.memory.size()"), number(131_072.0));
    assert_eq!(guest.value("lib.memory.read(4, 1)"), Value::Bytes(vec![1]), "also after it has grown");
    assert_eq!(guest.value("lib.grow(5)"), number(-1.0), "the module says that it has 3 pages at the most");
}

#[test]
fn what_lies_outside_of_the_memory_is_refused() {
    let guest = with_kitchen_sink();
    for call in
        ["read(65536, 1)", "read(-1, 1)", "read(0, 65537)", "read(1, -1)", "write(65535, new Uint8Array(2))"]
    {
        assert_eq!(guest.error(&format!("lib.memory.{call}")).name, "RangeError", "{call}");
    }
    for call in [
        "read(0.5, 1)",
        "read('0', 1)",
        "read(0)",
        "read(2 ** 53, 2 ** 53)",
        "write(0, [1])",
        "write(0, 'a')",
        "write(0)",
    ] {
        assert_eq!(guest.error(&format!("lib.memory.{call}")).name, "TypeError", "{call}");
    }
    assert_eq!(
        guest.value("lib.memory.read(65536, 0).length + lib.memory.read(65535, 1).length"),
        number(1.0)
    );
}

#[test]
fn a_trap_is_a_plain_error_that_says_what_happened() {
    let guest = with_kitchen_sink();
    for (call, reason) in [
        ("load(70000)", "Out of bounds memory access"),
        ("unreachable()", "Unreachable code should not be executed"),
        ("divide(1, 0)", "Division by zero"),
        ("throw()", "an exception that it does not catch"),
    ] {
        let error = guest.error(&format!("lib.{call}"));
        assert_eq!(error.name, "Error");
        assert_eq!(error.message, *format!("the WebAssembly module lib trapped: {reason}"));
    }
    let frames = guest.error("function f() {\n  lib.unreachable() }\nf()").frames;
    assert_eq!(frames[0].function, "f", "{frames:?}");
    assert_eq!(guest.error("lib.again()").name, "RangeError");
    assert!(guest.still_answers());
}

#[test]
fn an_error_of_a_host_function_comes_through_as_it_is() {
    let guest = host();
    let failing: HostFunction =
        Box::new(|_, _| Err(HostError { name: "TypeError".into(), message: "no".into() }));
    load(&guest, &kitchen_sink(), vec![failing, echo()]).expect("it loads");
    let error = guest.error("lib.callF(1)");
    assert_eq!(error.name, "TypeError");
    assert_eq!(error.message, "no");
}

#[test]
fn what_a_host_function_returns_must_be_the_number_that_the_module_expects() {
    let guest = host();
    let text: HostFunction = Box::new(|_, _| Ok(string("1")));
    let small: HostFunction = Box::new(|_, _| Ok(number(7.0)));
    load(&guest, &kitchen_sink(), vec![text, small]).expect("it loads");
    assert_eq!(guest.error("lib.callF(1)").message, "the value of the host function env.f must be a number");
    assert_eq!(
        guest.value("lib.callG(1n)"),
        Value::BigInt(BigInt::new(false, vec![7])),
        "an integer becomes one of 64 bits"
    );
}

#[test]
fn a_module_that_does_not_parse_or_link_leaves_the_isolate_usable() {
    let guest = host();
    let error = |outcome| match outcome {
        Err(Failure::Js(error)) => error,
        other => panic!("{other:?}"),
    };
    let broken = error(load(&guest, &alone(b"\0asm\x01\0\0\0\x01".to_vec(), vec![]), vec![]));
    assert_eq!(broken.name, "CompileError");
    let unlinked = WasmModule { imports: vec![import("other", None)], ..kitchen_sink() };
    assert_eq!(
        error(load(&guest, &unlinked, vec![echo()])).name,
        "LinkError",
        "nothing is given under the name"
    );
    let start = wasm::module(
        &[],
        &[wasm::Function { name: "", parameters: &[], results: &[], code: &[0] }],
        &[(8, &[0])],
    );
    let trapped = error(load(&guest, &alone(start, vec![]), vec![]));
    assert_eq!(
        trapped.message,
        "the WebAssembly module lib trapped: Unreachable code should not be executed"
    );
    assert_eq!(guest.value("typeof lib"), string("undefined"));
    load(&guest, &kitchen_sink(), vec![echo(), echo()]).expect("it loads");
    assert_eq!(guest.value("lib.add(1, 2)"), number(3.0));
}

#[test]
fn a_name_that_the_guest_has_fixed_is_told() {
    let guest = host();
    guest.value("Object.defineProperty(globalThis, 'lib', {value: 1}); 0");
    let Err(Failure::Js(error)) = load(&guest, &kitchen_sink(), vec![echo(), echo()]) else {
        panic!("it loaded")
    };
    assert!(error.message.to_string_lossy().contains("lib cannot be bound"), "{error:?}");
    assert!(guest.still_answers());
}

#[test]
fn nothing_is_loaded_where_the_host_does_not_want_it() {
    let guest = guest(WebAssembly::None);
    assert_eq!(guest.value("typeof WebAssembly"), string("undefined"));
    let Err(Failure::Js(error)) = load(&guest, &kitchen_sink(), vec![echo(), echo()]) else {
        panic!("it loaded")
    };
    assert_eq!(error.message, "there is no WebAssembly here");
}

#[test]
fn modules_stand_beside_each_other_and_a_later_one_takes_a_name() {
    let guest = host();
    let first = WasmModule { name: "first".into(), ..kitchen_sink() };
    let second = WasmModule { name: "second".into(), ..kitchen_sink() };
    for module in [&first, &second, &first] {
        load(&guest, module, vec![echo(), echo()]).expect("it loads");
        guest.value("first.store(0, 1)");
    }
    assert_eq!(guest.value("second.load(0)"), number(0.0), "each has its own memory");
}

/// Searches everything that can be reached from the global `lib`, for what is WebAssembly's.
const SEARCH: &str = include_str!("wasm/search.js");

#[test]
fn nothing_of_webassembly_is_reached_from_what_the_guest_gets() {
    let guest = with_kitchen_sink();
    assert_eq!(guest.value("typeof WebAssembly"), string("undefined"));
    assert_eq!(guest.value(SEARCH), string(""));
}

/// The control: from the instance as it is, the constructors are reached, by its objects and by what its functions throw.
#[test]
fn the_same_search_finds_it_in_an_instance_that_is_handed_over_as_it_is() {
    let guest = guest(WebAssembly::Guest);
    let code = wasm::kitchen_sink();
    guest.bind("f", Box::new(|mut arguments| Ok(arguments.remove(0))));
    guest.value(&format!(
        "var raw = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array({code:?})), {{env: {{f, g: f}}}}).exports;
         globalThis.lib = {{memory: raw.memory, table: raw.table, const: raw.const, tag: raw.tag}}; delete globalThis.WebAssembly;"
    ));
    let found = guest.value(SEARCH);
    let Value::String(found) = &found else { panic!("{found:?}") };
    let found = found.to_string_lossy();
    for name in ["Global", "Memory", "Table", "Tag"] {
        assert!(found.split(',').any(|one| one == name), "{name} in {found}");
    }
    for (name, class) in [("load", "RuntimeError"), ("throw", "Exception")] {
        guest.value(&format!("globalThis.lib = {{{name}: raw.{name}}}"));
        let found = guest.value(SEARCH);
        let Value::String(found) = &found else { panic!("{found:?}") };
        assert!(found.to_string_lossy().split(',').any(|one| one == class), "{class} by {name}: {found:?}");
    }
}

/// What a guest may have done before a module is loaded.
const POISON: &str = include_str!("wasm/poison.js");

#[test]
fn a_guest_that_ran_first_gets_hold_of_nothing() {
    let guest = host();
    guest.eval(POISON).expect("it poisons");
    load(&guest, &kitchen_sink(), vec![echo(), echo()]).expect("it loads all the same");
    assert_eq!(guest.value("lib.add(20, 22)"), number(42.0));
    assert_eq!(guest.value("lib.callF(3)"), number(3.0));
    assert_eq!(guest.value("lib.callG(3n)"), Value::BigInt(BigInt::new(false, vec![3])));
    assert_eq!(guest.value("lib.wide(3)"), Value::BigInt(BigInt::new(false, vec![4])));
    assert_eq!(guest.value("lib.memory.read(0, 2)"), Value::Bytes(vec![0, 0]));
    assert_eq!(
        guest.value("var thrown = 0; try { lib.load(70000) } catch (error) { thrown = 1 } thrown"),
        number(1.0)
    );
    assert_eq!(guest.value("try { lib.add('x', 1) } catch { thrown = 2 } thrown"), number(2.0));
    assert_eq!(guest.value("got.length"), number(0.0));
    guest.value("try { [].push(1) } catch {} 0");
    assert_eq!(guest.value("got[0]"), string("get push"), "a control: what is poisoned notes who uses it");
}

/// The control: what the engine makes for a guest in the ordinary way does pass through its hands.
#[test]
fn the_same_poison_gets_hold_of_what_is_loaded_in_the_ordinary_way() {
    let guest = guest(WebAssembly::Guest);
    let code = wasm::kitchen_sink();
    guest.bind("f", Box::new(|mut arguments| Ok(arguments.remove(0))));
    guest.value(&format!("var code = new Uint8Array({code:?}), {{Module, Instance}} = WebAssembly; 0"));
    guest.eval(POISON).expect("it poisons");
    guest.value("try { new Instance(new Module(code), {other: {}}) } catch {} 0");
    assert_eq!(guest.value("got[0]"), string("get env"));
    guest.value("got.length = 0; try { new Instance(new Module(code), {__proto__: null, env: {__proto__: null, f, g: f}}).exports.pair().map(f) } catch {} 0");
    assert_eq!(guest.value("got[0]"), string("get map"));
}

#[test]
fn a_module_loads_in_a_guest_that_has_webassembly_itself() {
    let guest = guest(WebAssembly::Guest);
    load(&guest, &kitchen_sink(), vec![echo(), echo()]).expect("it loads");
    assert_eq!(guest.value("lib.add(1, 1) + typeof WebAssembly"), string("2object"));
}

#[test]
fn what_a_module_exports_under_an_odd_name_is_its_own() {
    let guest = host();
    let code = wasm::module(
        &[("__proto__", "__proto__", &[], &[wasm::I32])],
        &[
            wasm::Function { name: "__proto__", parameters: &[], results: &[wasm::I32], code: &[0x10, 0] },
            wasm::Function { name: "then", parameters: &[], results: &[wasm::I32], code: &[0x41, 2] },
        ],
        &[],
    );
    let imports = vec![WasmImport {
        module: "__proto__".into(),
        name: "__proto__".into(),
        result: Some(WasmNumber::I32),
    }];
    let exports = vec![function("__proto__", &[]), function("then", &[])];
    let module = WasmModule { imports, ..alone(code, exports) };
    load(&guest, &module, vec![Box::new(|_, _| Ok(number(1.0)))]).expect("it loads");
    assert_eq!(guest.value("lib['__proto__']() + lib.then()"), number(3.0));
    assert_eq!(guest.value("lib instanceof Object"), Value::Bool(false));
    assert_eq!(guest.value("({nothing: 1}).nothing"), number(1.0));
}

#[test]
fn the_values_of_a_loaded_module_cross_as_an_object() {
    let guest = host();
    let code = wasm::module(&[], &[], &[(6, b"\x01\x7E\x00\x42\x05\x0B"), (7, b"\x01c\x03\x00")]);
    let loaded = load(&guest, &alone(code, vec![export("c", WasmExportKind::Constant)]), vec![]);
    assert_eq!(loaded, Ok(object([("c", Value::BigInt(BigInt::new(false, vec![5])))])));
}
