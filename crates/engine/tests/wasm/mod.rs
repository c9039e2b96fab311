//! WebAssembly modules, written out.

#![allow(unreachable_pub, reason = "each test file uses some of it")]

pub const I32: u8 = 0x7F;
pub const I64: u8 = 0x7E;
pub const F32: u8 = 0x7D;
pub const F64: u8 = 0x7C;

/// A function: its export's name, or `""`; its parameters, its results, and its code without the end.
pub struct Function<'a> {
    pub name: &'a str,
    pub parameters: &'a [u8],
    pub results: &'a [u8],
    pub code: &'a [u8],
}

fn unsigned(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (number & 0x7F) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

fn counted(items: &[Vec<u8>]) -> Vec<u8> {
    [unsigned(items.len()), items.concat()].concat()
}

fn sized(bytes: &[u8]) -> Vec<u8> {
    [&unsigned(bytes.len()), bytes].concat()
}

fn section(number: u8, body: &[u8]) -> Vec<u8> {
    [vec![number], sized(body)].concat()
}

/// An imported function: both names, parameters, results.
pub type Import<'a> = (&'a str, &'a str, &'a [u8], &'a [u8]);

/// A module: imported functions, functions, and sections put where they belong by their number.
pub fn module(imports: &[Import<'_>], functions: &[Function<'_>], others: &[(u8, &[u8])]) -> Vec<u8> {
    let signature =
        |parameters: &[u8], results: &[u8]| [&[0x60][..], &sized(parameters), &sized(results)].concat();
    let types: Vec<Vec<u8>> = imports
        .iter()
        .map(|(_, _, parameters, results)| signature(parameters, results))
        .chain(functions.iter().map(|function| signature(function.parameters, function.results)))
        .collect();
    let import = |(index, (module, name, _, _)): (usize, &Import<'_>)| {
        [sized(module.as_bytes()), sized(name.as_bytes()), vec![0], unsigned(index)].concat()
    };
    let imported: Vec<Vec<u8>> = imports.iter().enumerate().map(import).collect();
    let declared: Vec<Vec<u8>> = (0..functions.len()).map(|index| unsigned(imports.len() + index)).collect();
    let bodies: Vec<Vec<u8>> =
        functions.iter().map(|function| sized(&[&[0], function.code, &[0x0B]].concat())).collect();
    let mut exported: Vec<Vec<u8>> = functions
        .iter()
        .enumerate()
        .filter(|(_, function)| !function.name.is_empty())
        .map(|(index, function)| {
            [sized(function.name.as_bytes()), vec![0], unsigned(imports.len() + index)].concat()
        })
        .collect();
    let mut sections =
        vec![(1, counted(&types)), (2, counted(&imported)), (3, counted(&declared)), (10, counted(&bodies))];
    for &(number, body) in others {
        if number == 7 {
            exported.push(body.to_vec());
        } else {
            sections.push((number, body.to_vec()));
        }
    }
    sections.push((7, counted(&exported)));
    // The section of tags stands between those of memories and of globals.
    sections.sort_by_key(|&(number, _)| if number == 13 { 55 } else { 10 * u32::from(number) });
    let sections = sections.iter().map(|(number, body)| section(*number, body));
    [b"\0asm\x01\0\0\0".to_vec()].into_iter().chain(sections).collect::<Vec<_>>().concat()
}

/// A module with something of everything that leads to the constructors where it is handed over as it is.
pub fn kitchen_sink() -> Vec<u8> {
    module(
        &[("env", "f", &[I32], &[I32]), ("env", "g", &[I64], &[I64])],
        &[
            Function {
                name: "add",
                parameters: &[I32, I32],
                results: &[I32],
                code: &[0x20, 0, 0x20, 1, 0x6A],
            },
            Function { name: "wide", parameters: &[I64], results: &[I64], code: &[0x20, 0, 0x42, 1, 0x7C] },
            Function {
                name: "half",
                parameters: &[F64],
                results: &[F32],
                code: &[0x20, 0, 0xB6, 0x43, 0, 0, 0, 0x3F, 0x94],
            },
            Function { name: "pair", parameters: &[], results: &[I32, I64], code: &[0x41, 1, 0x42, 2] },
            Function { name: "load", parameters: &[I32], results: &[I32], code: &[0x20, 0, 0x28, 2, 0] },
            Function {
                name: "store",
                parameters: &[I32, I32],
                results: &[],
                code: &[0x20, 0, 0x20, 1, 0x36, 2, 0],
            },
            Function { name: "unreachable", parameters: &[], results: &[], code: &[0] },
            Function {
                name: "divide",
                parameters: &[I32, I32],
                results: &[I32],
                code: &[0x20, 0, 0x20, 1, 0x6D],
            },
            Function { name: "again", parameters: &[], results: &[], code: &[0x10, 10] },
            Function { name: "grow", parameters: &[I32], results: &[I32], code: &[0x20, 0, 0x40, 0] },
            Function { name: "throw", parameters: &[], results: &[], code: &[0x08, 0] },
            Function { name: "callF", parameters: &[I32], results: &[I32], code: &[0x20, 0, 0x10, 0] },
            Function { name: "callG", parameters: &[I64], results: &[I64], code: &[0x20, 0, 0x10, 1] },
        ],
        &[
            (4, b"\x01\x70\x00\x01"),
            (5, b"\x01\x01\x01\x03"),
            (13, b"\x01\x00\x08"),
            (6, b"\x02\x7F\x00\x41\x2A\x0B\x7F\x01\x41\x07\x0B"),
            (7, b"\x06memory\x02\x00"),
            (7, b"\x05table\x01\x00"),
            (7, b"\x05const\x03\x00"),
            (7, b"\x03var\x03\x01"),
            (7, b"\x03tag\x04\x00"),
        ],
    )
}
