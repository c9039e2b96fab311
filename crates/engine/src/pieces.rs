//! Long bytes cross in pieces, through one array that only this crate holds. Its address is taken, which pins it for good; one
//! as long as the bytes would be a second copy of them, in fresh memory.

use crate::ffi::{Context, EngineString, Kept, Local, Thrown};
use crate::prelude::Prelude;

/// How long a piece is, in bytes; flatten.js has the number, too.
pub(crate) const PIECE: usize = 256 << 10;

/// What the prelude does for it.
pub(crate) struct Pieces {
    make_bytes: Kept,
    put: Kept,
    take: Kept,
}

impl Pieces {
    pub(crate) fn new<'c>(
        context: &'c Context,
        bridge: Local<'c>,
        flatten: Local<'c>,
    ) -> Result<Self, Thrown<'c>> {
        let field = |object, name| -> Result<Kept, Thrown<'c>> {
            let function = context.get(object, &EngineString::from_str(context.table(), name))?;
            Ok(Kept::new(context, function))
        };
        Ok(Self {
            make_bytes: field(bridge, "makeBytes")?,
            put: field(bridge, "putPiece")?,
            take: field(flatten, "takePiece")?,
        })
    }
}

/// A copy of the bytes of the guest's that an array of the prelude's views. No guest code runs.
pub(crate) fn take<'c>(
    context: &'c Context,
    prelude: &Prelude,
    bytes: Local<'c>,
) -> Result<Vec<u8>, Thrown<'c>> {
    let length = context.byte_length(bytes)?;
    let piece = context.zeros(PIECE)?;
    let mut taken = Vec::with_capacity(length);
    for start in (0..length).step_by(PIECE) {
        let count = PIECE.min(length - start);
        let place = [bytes, piece, context.number(start as f64), context.number(count as f64)];
        prelude.call(context, &prelude.pieces.take, &place)?;
        context.append_bytes(piece, count, &mut taken)?;
    }
    Ok(taken)
}

/// A `Uint8Array` of the guest's with these bytes, which it can transfer and resize. No guest code runs.
pub(crate) fn put<'c>(
    context: &'c Context,
    prelude: &Prelude,
    bytes: &[u8],
) -> Result<Local<'c>, Thrown<'c>> {
    let array = prelude.call(context, &prelude.pieces.make_bytes, &[context.number(bytes.len() as f64)])?;
    let (pieces, rest) = bytes.as_chunks::<PIECE>();
    let put = |piece, start: usize| {
        prelude.call(context, &prelude.pieces.put, &[array, piece, context.number(start as f64)])
    };
    let piece = context.zeros(PIECE)?;
    for (index, bytes) in pieces.iter().enumerate() {
        context.overwrite(piece, bytes)?;
        put(piece, index * PIECE)?;
    }
    put(context.bytes(rest)?, pieces.len() * PIECE)?;
    Ok(array)
}
