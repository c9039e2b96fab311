//! A [`WasmModule`] in bytes: four fields of the message that it travels in.

use super::bounds::{WASM_BYTES, WASM_ENTRIES, WASM_NAME_BYTES, WASM_PARAMETERS};
use super::error::{DecodeError, EncodeError};
use super::record::{RECORD_OVERHEAD, RecordReader, RecordWriter};
use crate::message::{WasmExport, WasmExportKind, WasmImport, WasmModule, WasmNumber};

const WITHOUT_RESULT: u64 = 0;
const WITH_RESULT: u64 = 1;

const FUNCTION: u64 = 0;
const MEMORY: u64 = 1;
const CONSTANT: u64 = 2;

/// The number of each, which is also its place in this list.
const NUMBERS: [WasmNumber; 4] = [WasmNumber::I32, WasmNumber::I64, WasmNumber::F32, WasmNumber::F64];

/// More than the fields take.
pub(super) const MAX_WASM_MODULE_BYTES: usize = WASM_BYTES
    + WASM_NAME_BYTES
    + WASM_ENTRIES * (3 * WASM_NAME_BYTES + WASM_PARAMETERS + 2 * RECORD_OVERHEAD)
    + RECORD_OVERHEAD;

pub(super) fn write_wasm_module(
    writer: &mut RecordWriter<'_>,
    module: &WasmModule,
) -> Result<(), EncodeError> {
    let WasmModule { name, code, imports, exports } = module;
    writer.text("the module's name", name, WASM_NAME_BYTES)?;
    writer.bytes("the module", code, WASM_BYTES)?;
    writer.list("the imports", imports.len(), WASM_ENTRIES)?;
    for WasmImport { module, name, result } in imports {
        match result {
            None => writer.record(WITHOUT_RESULT, 2),
            Some(_) => writer.record(WITH_RESULT, 3),
        }
        writer.text("an import's module", module, WASM_NAME_BYTES)?;
        writer.text("an import's name", name, WASM_NAME_BYTES)?;
        if let Some(result) = result {
            writer.unsigned(*result as u64);
        }
    }
    writer.list("the exports", exports.len(), WASM_ENTRIES)?;
    for WasmExport { name, kind } in exports {
        match kind {
            WasmExportKind::Function(parameters) => {
                writer.record(FUNCTION, 2);
                writer.text("an export's name", name, WASM_NAME_BYTES)?;
                writer.list("the parameters", parameters.len(), WASM_PARAMETERS)?;
                for &parameter in parameters {
                    writer.unsigned(parameter as u64);
                }
            }
            WasmExportKind::Memory | WasmExportKind::Constant => {
                writer.record(if *kind == WasmExportKind::Memory { MEMORY } else { CONSTANT }, 1);
                writer.text("an export's name", name, WASM_NAME_BYTES)?;
            }
        }
    }
    Ok(())
}

pub(super) fn read_wasm_module(reader: &mut RecordReader<'_>) -> Result<WasmModule, DecodeError> {
    Ok(WasmModule {
        name: reader.text("the module's name", WASM_NAME_BYTES)?,
        code: reader.bytes("the module", WASM_BYTES)?,
        imports: reader.list("the imports", WASM_ENTRIES, read_import)?,
        exports: reader.list("the exports", WASM_ENTRIES, read_export)?,
    })
}

fn read_import(reader: &mut RecordReader<'_>) -> Result<WasmImport, DecodeError> {
    let record = reader.record("import")?;
    let has_result = match (record.number, record.fields) {
        (WITHOUT_RESULT, 2) => false,
        (WITH_RESULT, 3) => true,
        _ => return Err(record.unknown()),
    };
    Ok(WasmImport {
        module: reader.text("an import's module", WASM_NAME_BYTES)?,
        name: reader.text("an import's name", WASM_NAME_BYTES)?,
        result: if has_result { Some(read_number(reader)?) } else { None },
    })
}

fn read_export(reader: &mut RecordReader<'_>) -> Result<WasmExport, DecodeError> {
    let record = reader.record("export")?;
    let kind = (record.number, record.fields);
    if ![(FUNCTION, 2), (MEMORY, 1), (CONSTANT, 1)].contains(&kind) {
        return Err(record.unknown());
    }
    Ok(WasmExport {
        name: reader.text("an export's name", WASM_NAME_BYTES)?,
        kind: match record.number {
            FUNCTION => {
                WasmExportKind::Function(reader.list("the parameters", WASM_PARAMETERS, read_number)?)
            }
            MEMORY => WasmExportKind::Memory,
            _ => WasmExportKind::Constant,
        },
    })
}

fn read_number(reader: &mut RecordReader<'_>) -> Result<WasmNumber, DecodeError> {
    reader.choice("WebAssembly number", &NUMBERS)
}
