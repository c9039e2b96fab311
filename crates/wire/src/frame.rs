//! Frames: a message's length as four bytes, little-endian, then the message.
//!
//! Nothing here reads or writes a socket. The reader's owner reads into [`FrameReader::spare`], says how much came
//! with [`FrameReader::filled`], and takes the frames that are complete.

use std::error::Error;
use std::fmt;

use crate::budget::Budget;
use crate::codec::{EncodeError, Message};

const HEADER_BYTES: usize = size_of::<u32>();

/// Appends a message as a frame.
///
/// # Errors
///
/// When the message cannot be encoded, or is longer than a frame can say. Then `out` is as it was.
pub fn encode_frame<M: Message>(out: &mut Vec<u8>, message: &M, budget: &Budget) -> Result<(), EncodeError> {
    let start = out.len();
    let body = start + HEADER_BYTES;
    out.resize(body, 0);
    let encoded = message.encode(out, budget).and_then(|()| {
        let length = out.len() - body;
        u32::try_from(length).map_err(|_| EncodeError::FrameTooLong { length })
    });
    match encoded {
        Ok(length) => {
            out[start..body].copy_from_slice(&length.to_le_bytes());
            Ok(())
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}

/// A frame announces more bytes than the reader takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameTooLong {
    /// The announced length.
    pub length: usize,
    /// The reader's limit.
    pub limit: usize,
}

impl fmt::Display for FrameTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a frame of {} bytes is announced; at most {} are taken", self.length, self.limit)
    }
}

impl Error for FrameTooLong {}

/// Cuts a stream of bytes into frames.
///
/// A frame that fits into the buffer is never moved: it arrives there and is lent from there. The buffer grows
/// for a frame no faster than the frame arrives, but for the first [`TRUSTED_BYTES`](Self::TRUSTED_BYTES), and
/// is given back when what it held has been handed out and it is larger than [`IDLE_BYTES`](Self::IDLE_BYTES).
#[derive(Debug)]
pub struct FrameReader {
    /// All of it initialised; what was received and not handed out is `start..end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    limit: usize,
}

impl FrameReader {
    /// The buffer's first size.
    pub const INITIAL_BYTES: usize = 16 << 10;

    /// The most that is kept for a peer that says nothing.
    pub const IDLE_BYTES: usize = 64 << 10;

    /// Up to here an announced length is believed, so that common frames arrive in one piece.
    pub const TRUSTED_BYTES: usize = 2 << 20;

    /// A reader for frames whose message has at most `limit` bytes; see
    /// [`Message::max_encoded_bytes`]. Nothing is allocated before bytes are awaited.
    pub fn new(limit: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, end: 0, limit }
    }

    /// Changes the limit, for the frames that have not been handed out.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Room for bytes that are about to be received: at least `min` of them, and at least one.
    pub fn spare(&mut self, min: usize) -> &mut [u8] {
        self.make_room(min.max(1));
        &mut self.buffer[self.end..]
    }

    /// Says that the first `count` bytes of the [`spare`](Self::spare) room have been received.
    ///
    /// # Panics
    ///
    /// When the room was smaller.
    pub fn filled(&mut self, count: usize) {
        assert!(count <= self.buffer.len() - self.end, "more bytes were filled in than there was room");
        self.end += count;
    }

    /// Takes bytes that have been received elsewhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len());
        self.buffer[self.end..][..bytes.len()].copy_from_slice(bytes);
        self.end += bytes.len();
    }

    /// The next message that is complete, without its length; `None` when more bytes must come first.
    ///
    /// # Errors
    ///
    /// When a frame announces more than the limit. There is no way on from there.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FrameTooLong> {
        let Some(length) = self.announced()? else { return Ok(None) };
        let body = self.start + HEADER_BYTES;
        if self.end - body < length {
            return Ok(None);
        }
        self.start = body + length;
        Ok(Some(&self.buffer[body..self.start]))
    }

    /// How many bytes were received and not handed out. At the end of the stream, not 0 means that a frame was
    /// cut off.
    pub fn pending(&self) -> usize {
        self.end - self.start
    }

    /// The length that the next frame announces, once it has.
    fn announced(&self) -> Result<Option<usize>, FrameTooLong> {
        let Some(header) = self.buffer[self.start..self.end].first_chunk() else { return Ok(None) };
        let length = u32::from_le_bytes(*header) as usize;
        if length > self.limit {
            return Err(FrameTooLong { length, limit: self.limit });
        }
        Ok(Some(length))
    }

    /// Makes the spare room at least this large, moving what is pending only when it must.
    fn make_room(&mut self, min: usize) {
        let pending = self.pending();
        if pending == 0 {
            self.start = 0;
            self.end = 0;
        }
        let needed = self.believed().max(pending.saturating_add(min));
        let is_oversized = self.buffer.len() > needed.max(Self::IDLE_BYTES);
        if self.buffer.len() - self.start >= needed && !is_oversized {
            return;
        }
        if self.buffer.len() >= needed && !is_oversized {
            self.buffer.copy_within(self.start..self.end, 0);
        } else {
            // A large zeroed buffer comes from the system untouched: only what arrives takes memory.
            let mut buffer = vec![0; needed.max(Self::INITIAL_BYTES)];
            buffer[..pending].copy_from_slice(&self.buffer[self.start..self.end]);
            self.buffer = buffer;
        }
        self.start = 0;
        self.end = pending;
    }

    /// How much of the pending frame's announced length is believed by now.
    fn believed(&self) -> usize {
        match self.announced() {
            Ok(Some(length)) => {
                let received = self.pending();
                (HEADER_BYTES + length).min(Self::TRUSTED_BYTES.max(received.saturating_mul(2)))
            }
            Ok(None) | Err(FrameTooLong { .. }) => 0,
        }
    }
}
