//! A journal behind a signature: `magic ‖ HMAC-SHA256 ‖ payload`.
//!
//! The HMAC is over the magic with its version, the length of the associated data, the associated data and the payload, and
//! is compared in constant time before anything of the payload is looked at.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::agent::error::JournalFault;
use crate::agent::journal::Journal;

/// With the version of the format in its last byte.
const MAGIC: &[u8; 8] = b"pydenoJ\x02";
const TAG: usize = 32;
/// The shortest key that is taken, in bytes.
pub const MIN_KEY_BYTES: usize = 16;

/// Encodes and signs a journal; no longer than `most` bytes.
///
/// # Errors
///
/// The key is too short, or the journal too long.
pub fn seal(journal: &Journal, key: &[u8], associated: &[u8], most: usize) -> Result<Vec<u8>, JournalFault> {
    check_key(key)?;
    let room = most.saturating_sub(MAGIC.len() + TAG);
    let payload = journal.encode(room).ok_or(JournalFault::TooLong { most })?;
    let tag = mac(key, associated, &payload)?.finalize().into_bytes();
    Ok([MAGIC.as_slice(), tag.as_slice(), &payload].concat())
}

/// Checks that a sealed journal was signed with one of the keys, and decodes it.
///
/// # Errors
///
/// There is no key, or one is too short; it is longer than `most` bytes, was changed, was signed with another key or for other
/// associated data, or is of another build.
pub fn open<K: AsRef<[u8]>>(
    sealed: &[u8],
    keys: &[K],
    associated: &[u8],
    most: usize,
) -> Result<Journal, JournalFault> {
    if keys.is_empty() {
        return Err(JournalFault::ShortKey);
    }
    keys.iter().try_for_each(|key| check_key(key.as_ref()))?;
    if sealed.len() > most {
        return Err(JournalFault::TooLong { most });
    }
    let rest = sealed.strip_prefix(MAGIC).ok_or(JournalFault::NoJournal)?;
    let (tag, payload) = rest.split_at_checked(TAG).ok_or(JournalFault::NoJournal)?;
    let signed = keys
        .iter()
        .any(|key| mac(key.as_ref(), associated, payload).is_ok_and(|mac| mac.verify_slice(tag).is_ok()));
    if signed { Journal::decode(payload) } else { Err(JournalFault::Signature) }
}

fn check_key(key: &[u8]) -> Result<(), JournalFault> {
    if key.len() < MIN_KEY_BYTES { Err(JournalFault::ShortKey) } else { Ok(()) }
}

fn mac(key: &[u8], associated: &[u8], payload: &[u8]) -> Result<Hmac<Sha256>, JournalFault> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).map_err(|_| JournalFault::ShortKey)?;
    mac.update(MAGIC);
    mac.update(&(associated.len() as u64).to_be_bytes());
    mac.update(associated);
    mac.update(payload);
    Ok(mac)
}
