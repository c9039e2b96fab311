//! Frames: a message's length as four bytes, little-endian, then the message.
//!
//! Nothing here reads or writes a socket. The reader's owner appends what it receives in [`FrameReader::receive`], and takes the
//! frames that are complete.

use std::error::Error;
use std::fmt;

use crate::budget::Budget;
use crate::codec::{DecodeError, EncodeError, Message};

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
///
/// What is spare is capacity and was never written to, so only what arrives takes memory; and a large buffer grows by an
/// allocator that moves pages and copies nothing.
#[derive(Debug)]
pub struct FrameReader {
    /// What was received; what was not handed out begins at `start`.
    buffer: Vec<u8>,
    start: usize,
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
        Self { buffer: Vec::new(), start: 0, limit }
    }

    /// Changes the limit, for the frames that have not been handed out.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Has `read` append what it receives to a vector with room for at least `min` more bytes, and at least one; returns what
    /// `read` returns.
    ///
    /// # Panics
    ///
    /// When `read` takes bytes away.
    pub fn receive<T>(&mut self, min: usize, read: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        self.make_room(min.max(1));
        let before = self.buffer.len();
        let result = read(&mut self.buffer);
        assert!(self.buffer.len() >= before, "bytes that had been received were taken away");
        result
    }

    /// Takes bytes that have been received elsewhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.receive(bytes.len(), |buffer| buffer.extend_from_slice(bytes));
    }

    /// The next message that is complete, without its length; `None` when more bytes must come first.
    ///
    /// # Errors
    ///
    /// When a frame announces more than the limit. There is no way on from there.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, FrameTooLong> {
        let Some(length) = self.announced()? else { return Ok(None) };
        let body = self.start + HEADER_BYTES;
        if self.pending() - HEADER_BYTES < length {
            return Ok(None);
        }
        self.start = body + length;
        Ok(Some(&self.buffer[body..self.start]))
    }

    /// The next message that is complete, decoded; `None` when more bytes must come first. A large one that ends the buffer is
    /// [taken](Message::take) with it.
    ///
    /// # Errors
    ///
    /// As [`next_frame`](Self::next_frame); and, within, those of decoding.
    pub fn next_message<M: Message>(
        &mut self,
        budget: &Budget,
    ) -> Result<Option<Result<M, DecodeError>>, FrameTooLong> {
        if let Some((buffer, start)) = self.take_large_frame()? {
            return Ok(Some(M::take(buffer, start, budget)));
        }
        Ok(self.next_frame()?.map(|payload| M::decode(payload, budget)))
    }

    /// As [`next_frame`](Self::next_frame), with the whole buffer and where in it the message begins, for a message that ends it
    /// and is larger than [`IDLE_BYTES`](Self::IDLE_BYTES): that buffer would be given back. `None` for every other.
    ///
    /// # Errors
    ///
    /// As `next_frame`.
    pub fn take_large_frame(&mut self) -> Result<Option<(Vec<u8>, usize)>, FrameTooLong> {
        let Some(length) = self.announced()? else { return Ok(None) };
        if length <= Self::IDLE_BYTES || self.pending() - HEADER_BYTES != length {
            return Ok(None);
        }
        let body = std::mem::take(&mut self.start) + HEADER_BYTES;
        Ok(Some((std::mem::take(&mut self.buffer), body)))
    }

    /// How many bytes were received and not handed out. At the end of the stream, not 0 means that a frame was
    /// cut off.
    pub fn pending(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// The length that the next frame announces, once it has.
    fn announced(&self) -> Result<Option<usize>, FrameTooLong> {
        let Some(header) = self.buffer[self.start..].first_chunk() else { return Ok(None) };
        let length = u32::from_le_bytes(*header) as usize;
        if length > self.limit {
            return Err(FrameTooLong { length, limit: self.limit });
        }
        Ok(Some(length))
    }

    /// Makes the spare room at least this large, moving what is pending only when it must.
    fn make_room(&mut self, min: usize) {
        let needed = self.believed().max(self.pending().saturating_add(min));
        let is_oversized = self.buffer.capacity() > needed.max(Self::IDLE_BYTES);
        if self.pending() > 0 && !is_oversized && self.buffer.capacity() - self.start >= needed {
            return;
        }
        let wanted = needed.max(Self::INITIAL_BYTES);
        if is_oversized {
            let mut buffer = Vec::with_capacity(wanted);
            buffer.extend_from_slice(&self.buffer[self.start..]);
            self.buffer = buffer;
        } else {
            self.buffer.drain(..self.start);
            self.buffer.reserve_exact(wanted - self.buffer.len());
        }
        self.start = 0;
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
