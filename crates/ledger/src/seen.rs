//! Which requests were seen: a fingerprint of each entry that answers one, about fourteen bytes in memory, so that a log of tens of
//! millions needs no index on disk and every append is sequential.
//!
//! A fingerprint is half a hash of who asked for what under which id. Two may be alike; the entry itself tells.

use crate::entry::Entry;
use crate::names::{Name, RequestId};
use hashbrown::HashTable;
use sha2::{Digest as _, Sha256};

/// What an entry answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A request to spend or to reserve.
    Request,
    /// How a reservation ended.
    End,
}

/// A request, as far as ids go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    pub(crate) fn new(kind: Kind, (dataset, by, id): (&Name, &Name, &RequestId)) -> Self {
        let mut hash = Sha256::new();
        hash.update([match kind {
            Kind::Request => 1,
            Kind::End => 2,
        }]);
        // Names have no zero byte in them, and ids come last.
        for part in [dataset.as_str(), by.as_str(), id.as_str()] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        let bytes: [u8; 32] = hash.finalize().into();
        let mut half = [0; 8];
        half.copy_from_slice(&bytes[..8]);
        // Zero stands for entries that answer nothing.
        Self(u64::from_le_bytes(half).max(1))
    }

    /// Of an entry.
    pub(crate) fn of(entry: &Entry) -> Option<Self> {
        if let Some((decided, _)) = entry.event.decision() {
            return Some(Self::new(Kind::Request, (&decided.dataset, &decided.by, &decided.id)));
        }
        entry.event.end().map(|request| Self::new(Kind::End, request))
    }
}

/// The fingerprints of all entries, in order, and where each is.
#[derive(Debug)]
pub(crate) struct Seen {
    /// That of entry `i + 1`; 0 for none.
    fingerprints: Vec<u64>,
    /// By a part of the fingerprint: each is small enough for the caches, and grows on its own, so that nobody waits long for it.
    tables: Vec<HashTable<u32>>,
}

/// How many tables there are.
const TABLES: usize = 1024;

/// The table of a fingerprint: neither the bits that make its place there nor those that tell it from its neighbors.
fn table_of(value: u64) -> usize {
    usize::try_from(value >> 40).unwrap_or(0) % TABLES
}

impl Default for Seen {
    fn default() -> Self {
        Self { fingerprints: Vec::new(), tables: vec![HashTable::new(); TABLES] }
    }
}

impl Seen {
    /// How many entries it knows.
    pub(crate) fn len(&self) -> u64 {
        self.fingerprints.len() as u64
    }

    /// Adds the next entry.
    pub(crate) fn push(&mut self, fingerprint: Option<Fingerprint>) {
        let value = fingerprint.map_or(0, |fingerprint| fingerprint.0);
        let Self { fingerprints, tables } = self;
        // Past four billion entries a retry is charged again: too much, never too little.
        if let (true, Ok(index)) = (value != 0, u32::try_from(fingerprints.len())) {
            fingerprints.push(value);
            tables[table_of(value)].insert_unique(value, index, |&i| fingerprints[i as usize]);
        } else {
            fingerprints.push(value);
        }
    }

    /// Forgets the entries after one.
    pub(crate) fn forget_after(&mut self, seq: u64) {
        while self.len() > seq {
            let (last, value) = (self.fingerprints.len() - 1, self.fingerprints.pop().unwrap_or(0));
            if let Ok(found) = self.tables[table_of(value)].find_entry(value, |&i| i as usize == last) {
                found.remove();
            }
        }
    }

    /// The entries with a fingerprint: nearly always none, or the one.
    pub(crate) fn find(&self, fingerprint: &Fingerprint) -> Vec<u64> {
        let alike = |&&i: &&u32| self.fingerprints[i as usize] == fingerprint.0;
        let mut entries: Vec<u64> = self.tables[table_of(fingerprint.0)]
            .iter_hash(fingerprint.0)
            .filter(alike)
            .map(|&i| u64::from(i) + 1)
            .collect();
        entries.sort_unstable();
        entries
    }

    /// The fingerprints of the entries after one, as they are stored.
    pub(crate) fn bytes_after(&self, seq: u64) -> Vec<u8> {
        let start = usize::try_from(seq).unwrap_or(usize::MAX).min(self.fingerprints.len());
        let words: Vec<[u8; 8]> = self.fingerprints[start..].iter().map(|value| value.to_le_bytes()).collect();
        words.into_flattened()
    }

    /// Entries as they were stored; `None` when these are no fingerprints.
    pub(crate) fn from_bytes(chunks: &[Vec<u8>]) -> Option<Self> {
        let count: usize = chunks.iter().map(|chunk| chunk.len() / 8).sum();
        // Room for more, so that those who ask first do not wait for it.
        let mut fingerprints: Vec<u64> = Vec::with_capacity(count + count / 8);
        for chunk in chunks {
            let (words, []) = chunk.as_chunks::<8>() else { return None };
            fingerprints.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
        }
        // Table by table: millions of places in any order would each be fetched from memory.
        let each = || (0..u32::MAX).zip(fingerprints.iter().copied()).filter(|(_, value)| *value != 0);
        let mut ends = vec![0; TABLES];
        each().for_each(|(_, value)| ends[table_of(value)] += 1);
        let roomy = |&count: &usize| HashTable::with_capacity(count + count / 8);
        let mut tables: Vec<HashTable<u32>> = ends.iter().map(roomy).collect();
        let mut total = 0;
        for end in &mut ends {
            total += std::mem::replace(end, total);
        }
        let mut ordered = vec![(0, 0); total];
        for (index, value) in each() {
            let next = &mut ends[table_of(value)];
            ordered[*next] = (index, value);
            *next += 1;
        }
        for (index, value) in ordered {
            tables[table_of(value)].insert_unique(value, index, |&i: &u32| fingerprints[i as usize]);
        }
        Some(Self { fingerprints, tables })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forgotten_is_not_found_and_the_rest_is() {
        let name = |text: &str| Name::new(text).expect("a name");
        let of = |id: u32| {
            let id = RequestId::new(id.to_string()).expect("an id");
            Fingerprint::new(Kind::Request, (&name("sales"), &name("alice"), &id))
        };
        let mut seen = Seen::default();
        for i in 0..1000 {
            // Entries that answer nothing, and one that is answered twice.
            seen.push((i % 3 != 0).then(|| of(if i == 998 { 1 } else { i })));
        }
        let before = seen.bytes_after(0);
        assert_eq!(seen.find(&of(1)), [2, 999]);
        seen.forget_after(500);
        assert_eq!((seen.len(), seen.find(&of(1)), seen.find(&of(499))), (500, vec![2], vec![500]));
        assert!((500..1000).all(|i| seen.find(&of(i)).is_empty()));
        assert_eq!(seen.bytes_after(0), before[..4000]);
        // As it was stored, in pieces.
        let stored = [before[..800].to_vec(), before[800..4000].to_vec()];
        let mut stored = Seen::from_bytes(&stored).expect("fingerprints");
        assert_eq!((stored.len(), stored.bytes_after(0)), (500, before[..4000].to_vec()));
        assert!((0..1000).all(|i| stored.find(&of(i)) == seen.find(&of(i))));
        stored.forget_after(2);
        assert_eq!((stored.find(&of(1)), stored.find(&of(2))), (vec![2], vec![]));
        assert!(Seen::from_bytes(&[vec![0; 7]]).is_none());
        seen.push(Some(of(7000)));
        assert_eq!(seen.find(&of(7000)), [501]);
    }
}
