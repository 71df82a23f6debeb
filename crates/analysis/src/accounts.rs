//! Accounts that last: what each person has spent, in one file.
//!
//! ```text
//! page 0, 1   commit records, written in turn, twice in each page: generation, rounds, the public worst case, a checksum
//! page 2      settings, written once: person column, mode, budgets, number of people, salt, checksums
//! keys        for each person a key of 128 bits, sorted: a person's place is the rank of their key
//! directory   where the keys with given leading bits begin
//! blocks      65,536 people each, twice: generation and checksum, then shares, then tiers if there are several
//! ```
//!
//! # A round
//! A block that changes is written to the one of its two places that is not current, with the next generation; when all are on
//! disk, one commit record makes that generation current, and only when that is on disk may noise be drawn. A crash at any moment
//! leaves the last committed round, whole: blocks of a later generation are not looked at, and are wiped before the next round takes
//! that generation. Current is, of a block's two places, the one with the highest generation that is committed.
//!
//! Everything is read through a map of the file, so opening costs a few pages, and written with `write` calls, so that a full disk
//! is an error and not a crash. The file is locked for one process. What cannot be noticed is an old copy put in its place.

use crate::person::{Key, Salt};
use crate::settings::{Mode, Settings, Tier};
use bytemuck::cast_slice;
use paygo_accounting::filter::BudgetError;
use paygo_accounting::individual::{FULL, PersonalBudget};
use paygo_accounting::secret::Secret;
use paygo_mapped::Mapped;
use paygo_numeric::Amount;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

const PAGE: usize = 4096;
/// People in a block.
pub(crate) const BLOCK: usize = 1 << 16;
const MAGIC: &[u8; 8] = b"paygoacc";
const VERSION: u32 = 1;
/// Keys that one entry of the directory is for, about.
const PER_BUCKET: usize = 2;

#[cfg(target_endian = "big")]
compile_error!("accounts are mapped as they are on disk, little-endian");

/// As it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    settings: Settings,
    people: usize,
    salt: [u8; 16],
    keys_checksum: u32,
}

/// Accounts that cannot be opened, or not written to.
#[derive(Debug, thiserror::Error)]
pub enum AccountsError {
    /// The operating system's.
    #[error("accounts {}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another process has them.
    #[error("accounts {}: another process is using them; try again when it has finished", .0.display())]
    Locked(PathBuf),
    /// Not accounts, or damaged.
    #[error("accounts {}: {problem}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        problem: &'static str,
    },
    /// Made by another version.
    #[error("accounts {}: format {found}; this program reads format {VERSION}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// Opened with other settings than they were made with.
    #[error("accounts {}: {what} is {stored}, and {given} was asked for; it cannot be changed once there are accounts", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// Which setting.
        what: &'static str,
        /// As it was made.
        stored: String,
        /// As it was asked for.
        given: String,
    },
    /// The last write of a charge failed.
    #[error("accounts {}: {error}; the charge may have been made all the same, and nothing was released", path.display())]
    Uncertain {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// An earlier write failed, so what is on disk is not known.
    #[error("accounts {}: an earlier write failed; open them again", .0.display())]
    Poisoned(PathBuf),
    /// More than fit.
    #[error("too many people; expected at most {}", u32::MAX)]
    TooMany,
    /// A budget that nothing fits into.
    #[error(transparent)]
    Budget(#[from] BudgetError),
}

/// One person's account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disclosure {
    /// Their tier and budget.
    pub tier: Tier,
    /// What they have spent, in shares of their budget.
    pub share: u32,
    /// The same as ρ, rounded up.
    pub spent: Amount,
}

/// The last thing written in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Commit {
    generation: u64,
    rounds: u64,
    /// The sum of the public worst cases, in shares.
    worst_case: u64,
    /// The sum of the generations of all current blocks: a block that fell back to an older state is noticed.
    block_generations: u64,
}

/// A set of accounts, open and locked.
#[derive(Debug)]
pub struct Accounts {
    path: PathBuf,
    map: Mapped,
    stored: Stored,
    budgets: Vec<PersonalBudget>,
    places: Places,
    commit: Commit,
    /// Which of its two places is current, block by block, and its generation.
    current: Vec<(usize, u64)>,
    /// Places that a round which was never committed has written to.
    stale: Vec<usize>,
    poisoned: bool,
    /// Whether the file outlives this process.
    lasting: bool,
}

/// Where things are in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Places {
    people: usize,
    keys: usize,
    directory: usize,
    /// Leading bits of a key that choose an entry of the directory.
    bits: u32,
    blocks: usize,
    /// People in a whole block.
    block: usize,
    tiers: bool,
}

impl Places {
    fn new(people: usize, tiers: bool) -> Self {
        let page = |at: usize| at.next_multiple_of(PAGE);
        let bits = (people / PER_BUCKET).max(1).ilog2();
        let keys = 3 * PAGE;
        let directory = page(keys + people * size_of::<Key>());
        let blocks = page(directory + ((1usize << bits) + 1) * size_of::<u32>());
        Self { people, keys, directory, bits, blocks, block: people.clamp(1, BLOCK), tiers }
    }

    const fn count(&self) -> usize {
        self.people.div_ceil(self.block)
    }

    /// The people of a block.
    fn of(&self, block: usize) -> Range<usize> {
        block * self.block..((block + 1) * self.block).min(self.people)
    }

    /// One of the two places of a block.
    fn place(&self, block: usize, which: usize) -> usize {
        let data = self.block * size_of::<u32>() + if self.tiers { self.block } else { 0 };
        self.blocks + (2 * block + which) * (PAGE + data.next_multiple_of(PAGE))
    }

    fn end(&self) -> usize {
        self.place(self.count(), 0)
    }
}

/// The round is on disk. Only [`Accounts::charge`] makes one, and whoever draws noise consumes it.
#[derive(Debug)]
#[must_use = "a charge is spent, whether or not noise is drawn for it"]
pub(crate) struct Charged(());

impl Accounts {
    /// Accounts for these people, who have spent nothing; `tiers` says which tier each is in, in the order of their keys.
    /// They are at `path` when this returns, or forgotten with the process when there is none.
    ///
    /// # Errors
    /// [`AccountsError`]; a file that is there already is not touched.
    pub fn create(
        path: Option<&Path>,
        settings: Settings,
        salt: Salt,
        people: &[(Key, u8)],
    ) -> Result<Self, AccountsError> {
        let spent = vec![0; people.len()];
        Self::write_new(path, false, settings, salt, people, &spent, Commit::default())
    }

    fn write_new(
        path: Option<&Path>,
        replace: bool,
        settings: Settings,
        salt: Salt,
        people: &[(Key, u8)],
        spent: &[u32],
        commit: Commit,
    ) -> Result<Self, AccountsError> {
        debug_assert!(people.windows(2).all(|pair| pair[0].0 < pair[1].0), "sorted, each once");
        if u32::try_from(people.len()).is_err() {
            return Err(AccountsError::TooMany);
        }
        let shown = path.unwrap_or(Path::new("in memory")).to_owned();
        let io = |error| AccountsError::Io { path: shown.clone(), error };
        let keys: Vec<Key> = people.iter().map(|&(key, _)| key).collect();
        let keys_checksum = crc32fast::hash(cast_slice(&keys));
        let stored = Stored { settings, people: people.len(), salt: salt.0, keys_checksum };
        let places = Places::new(people.len(), stored.settings.tiers.len() > 1);
        let (file, temporary) = match path {
            Some(path) => {
                let temporary = NamedTempFile::new_in(folder(path)).map_err(io)?;
                (temporary.reopen().map_err(io)?, Some((temporary, path)))
            }
            None => (tempfile::tempfile().map_err(io)?, None),
        };
        file.set_len(places.end() as u64).map_err(io)?;
        file.write_all_at(cast_slice(&keys), places.keys as u64).map_err(io)?;
        file.write_all_at(cast_slice(&directory(&keys, places.bits)), places.directory as u64).map_err(io)?;
        file.write_all_at(&stored.page().map_err(io)?, 2 * PAGE as u64).map_err(io)?;
        // Every block at the generation of the commit.
        let generation = commit.generation + 1;
        write_blocks(&file, &places, generation, people, spent).map_err(io)?;
        let block_generations = generation.wrapping_mul(places.count() as u64);
        let commit = Commit { generation, block_generations, ..commit };
        // In both pages, so that a page of zeros is never taken for one that was not written yet.
        file.write_all_at(&commit.page().repeat(2), 0).map_err(io)?;
        if path.is_some() {
            file.sync_all().map_err(io)?;
        }
        // Locked before it can be seen under its name.
        let accounts = Self::from_file(shown.clone(), file, path.is_some())?;
        if let Some((temporary, path)) = temporary {
            name(temporary, path, replace).map_err(io)?;
        }
        Ok(accounts)
    }

    /// Opens and locks accounts.
    ///
    /// # Errors
    /// [`AccountsError`] when they are in use, damaged, or were made with other settings.
    pub fn open(path: &Path, settings: Option<&Settings>) -> Result<Self, AccountsError> {
        let io = |error| AccountsError::Io { path: path.to_owned(), error };
        // Through links, so that accounts that are written anew stay one file.
        let path = &std::fs::canonicalize(path).map_err(io)?;
        let file = File::options().read(true).write(true).open(path).map_err(io)?;
        let ours = file.metadata().map_err(io)?;
        let accounts = Self::from_file(path.to_owned(), file, true)?;
        // Between opening and locking, the file may have been replaced by one with more people.
        let theirs = std::fs::metadata(path).map_err(io)?;
        if (ours.dev(), ours.ino()) != (theirs.dev(), theirs.ino()) {
            return Err(AccountsError::Locked(path.to_owned()));
        }
        if let Some(settings) = settings {
            accounts.check(settings)?;
        }
        Ok(accounts)
    }

    fn from_file(path: PathBuf, file: File, lasting: bool) -> Result<Self, AccountsError> {
        let damaged = |problem| AccountsError::Damaged { path: path.clone(), problem };
        let map = Mapped::lock(file).map_err(|error| match error {
            TryLockError::WouldBlock => AccountsError::Locked(path.clone()),
            TryLockError::Error(error) => AccountsError::Io { path: path.clone(), error },
        })?;
        let bytes = map.bytes();
        if bytes.len() < 3 * PAGE || [0, 1].iter().all(|page| !bytes[page * PAGE..].starts_with(MAGIC)) {
            return Err(damaged("this is not a file of accounts; is the path right?"));
        }
        let mut commits = Vec::new();
        for page in [0, 1].map(|page| &bytes[page * PAGE..][..PAGE]) {
            match Commit::read(page) {
                Some(commit) => commits.push(commit),
                None if page.starts_with(MAGIC) && read_u32(page, 8) != VERSION => {
                    return Err(AccountsError::Version { found: read_u32(page, 8), path });
                }
                // It may have been the newest: going back to the other could forget a round that was answered.
                None => return Err(damaged("a commit record is not whole")),
            }
        }
        let commit = commits.into_iter().max_by_key(|commit| commit.generation);
        let commit = commit.ok_or_else(|| damaged("there is no commit record"))?;
        let stored = Stored::read(&bytes[2 * PAGE..3 * PAGE]).ok_or_else(|| damaged("the settings are not whole"))?;
        let places = Places::new(stored.people, stored.settings.tiers.len() > 1);
        if bytes.len() != places.end() {
            return Err(damaged("the file is shorter or longer than it was made"));
        }
        let mut current: Vec<(usize, u64)> = Vec::with_capacity(places.count());
        let mut stale = Vec::new();
        for block in 0..places.count() {
            let mut best: Option<(usize, u64)> = None;
            for which in [0, 1] {
                let place = places.place(block, which);
                match block_generation(&bytes[place..]) {
                    Some(generation) if generation > commit.generation => stale.push(place),
                    Some(generation) if best.is_none_or(|(_, best)| generation > best) => {
                        best = Some((which, generation))
                    }
                    Some(_) | None => {}
                }
            }
            current.push(best.ok_or_else(|| damaged("a block is missing"))?);
        }
        if current.iter().fold(0u64, |sum, (_, generation)| sum.wrapping_add(*generation)) != commit.block_generations {
            return Err(damaged("a block is older than the last round"));
        }
        let budgets = stored.settings.tiers.iter().map(|tier| tier.budget.budget()).collect::<Result<_, _>>()?;
        Ok(Self { path, map, stored, budgets, places, commit, current, stale, poisoned: false, lasting })
    }

    /// Whether these are the settings they were made with.
    ///
    /// # Errors
    /// [`AccountsError::Changed`] says what differs.
    pub fn check(&self, given: &Settings) -> Result<(), AccountsError> {
        let stored = &self.stored.settings;
        let changed = |what, stored: String, given: String| {
            Err(AccountsError::Changed { path: self.path.clone(), what, stored, given })
        };
        if stored.person != given.person {
            return changed("the person column", format!("`{}`", stored.person), format!("`{}`", given.person));
        }
        if stored.mode != given.mode {
            return changed("the mode", stored.mode.to_string(), given.mode.to_string());
        }
        if stored.tier_column != given.tier_column || stored.tiers != given.tiers {
            let shown = |settings: &Settings| match (&settings.tier_column, &settings.tiers[..]) {
                (None, [tier]) => tier.budget.to_string(),
                (column, tiers) => {
                    let tier = |tier: &Tier| format!("{}: {}", tier.name, tier.budget);
                    let tiers: Vec<String> = tiers.iter().map(tier).collect();
                    format!("`{}` with {}", column.as_deref().unwrap_or(""), tiers.join("; "))
                }
            };
            return changed("the budget", shown(stored), shown(given));
        }
        Ok(())
    }

    /// The same accounts with more people, who have spent nothing; those who are there keep what they have spent.
    ///
    /// # Errors
    /// [`AccountsError`]; open them again then.
    pub fn enroll(&mut self, newcomers: &[(Key, u8)]) -> Result<(), AccountsError> {
        if self.poisoned {
            return Err(AccountsError::Poisoned(self.path.clone()));
        }
        if self.lasting {
            let links = std::fs::metadata(&self.path).map(|file| file.nlink());
            let links = links.map_err(|error| AccountsError::Io { path: self.path.clone(), error })?;
            if links > 1 {
                let error =
                    io::Error::other("the file has several names (hard links); it can only be written anew under one");
                return Err(AccountsError::Io { path: self.path.clone(), error });
            }
        }
        if crc32fast::hash(cast_slice(self.keys())) != self.stored.keys_checksum {
            return Err(AccountsError::Damaged { path: self.path.clone(), problem: "the keys are not whole" });
        }
        let mut all: Vec<(Key, u8, u32)> = Vec::with_capacity(self.people() + newcomers.len());
        for block in 0..self.blocks() {
            let (shares, tiers) = (self.shares(block)?, self.tiers(block));
            let keys = &self.keys()[self.places.of(block)];
            all.extend(keys.iter().enumerate().map(|(i, &key)| (key, tiers.map_or(0, |tiers| tiers[i]), shares[i])));
        }
        all.extend(newcomers.iter().map(|&(key, tier)| (key, tier, 0)));
        // A stable sort: of two with one key, the one with an account stays.
        all.sort_by_key(|&(key, _, _)| key);
        all.dedup_by_key(|&mut (key, _, _)| key);
        let people: Vec<(Key, u8)> = all.iter().map(|&(key, tier, _)| (key, tier)).collect();
        let spent: Vec<u32> = all.iter().map(|&(_, _, spent)| spent).collect();
        let path = self.lasting.then_some(&*self.path);
        let settings = self.stored.settings.clone();
        // If it fails after the new file has its name, this one is no longer anybody's account.
        self.poisoned = true;
        *self = Self::write_new(path, true, settings, self.salt(), &people, &spent, self.commit)?;
        Ok(())
    }

    /// Makes a round durable: the new shares of the blocks that changed, and the public worst case of the round.
    ///
    /// # Errors
    /// [`AccountsError`]; no noise may then be drawn, and the accounts must be opened again.
    pub(crate) fn charge(&mut self, blocks: &[(usize, Vec<u32>)], worst_case: u64) -> Result<Charged, AccountsError> {
        if self.poisoned {
            return Err(AccountsError::Poisoned(self.path.clone()));
        }
        // Until the commit record is on disk, what is there is not known.
        self.poisoned = true;
        let path = self.path.clone();
        let io = |error| AccountsError::Io { path: path.clone(), error };
        let generation = self.commit.generation + 1;
        // What a round that was never committed left behind must not come to life with this generation.
        for place in std::mem::take(&mut self.stale) {
            self.map.write(place, &[0; PAGE]).map_err(io)?;
        }
        for (block, spent) in blocks {
            let bytes = block_bytes(*block, generation, spent, self.tiers(*block));
            let place = self.places.place(*block, 1 - self.current[*block].0);
            self.map.write(place, &bytes).map_err(io)?;
        }
        self.sync().map_err(io)?;
        let mut current = self.current.clone();
        let mut block_generations = self.commit.block_generations;
        for &(block, _) in blocks {
            let (which, old) = current[block];
            block_generations = block_generations.wrapping_sub(old).wrapping_add(generation);
            current[block] = (1 - which, generation);
        }
        let worst_case = self.commit.worst_case.saturating_add(worst_case);
        let commit = Commit { generation, rounds: self.commit.rounds + 1, worst_case, block_generations };
        let uncertain = |error| AccountsError::Uncertain { path: path.clone(), error };
        self.map.write(commit.at(), &commit.page()).map_err(uncertain)?;
        self.sync().map_err(uncertain)?;
        (self.commit, self.current, self.poisoned) = (commit, current, false);
        Ok(Charged(()))
    }

    fn sync(&self) -> io::Result<()> {
        if self.lasting { self.map.sync() } else { Ok(()) }
    }

    /// How many people have an account: secret, like everything about them.
    pub(crate) const fn people(&self) -> usize {
        self.places.people
    }

    pub(crate) const fn blocks(&self) -> usize {
        self.places.count()
    }

    /// People in a whole block.
    pub(crate) const fn block_size(&self) -> usize {
        self.places.block
    }

    /// The settings.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.stored.settings
    }

    /// A name for these accounts that no others have, and that tells nothing about anybody: made from what was drawn at random when they
    /// were made. It stays when people join.
    #[must_use]
    pub fn word(&self) -> String {
        format!("{:032x}", self.salt().key("\u{0}these accounts"))
    }

    /// The key of the hash.
    #[must_use]
    pub const fn salt(&self) -> Salt {
        Salt(self.stored.salt)
    }

    /// The budget of each tier.
    #[must_use]
    pub fn budgets(&self) -> &[PersonalBudget] {
        &self.budgets
    }

    /// The sum of the public worst cases so far, in shares of a budget: while it is at most [`paygo_accounting::individual::FULL`],
    /// nobody can have been left out.
    #[must_use]
    pub const fn worst_case(&self) -> u64 {
        self.commit.worst_case
    }

    /// How many rounds there were.
    #[must_use]
    pub const fn rounds(&self) -> u64 {
        self.commit.rounds
    }

    /// One person's account, to be shown to that person and to nobody else; `None` when they have none.
    ///
    /// # Errors
    /// [`AccountsError::Damaged`] when the block they are in is not whole.
    pub fn disclose(&self, id: &str) -> Result<Option<Secret<Disclosure>>, AccountsError> {
        let Some(place) = self.find(self.salt().key(id)) else { return Ok(None) };
        let (block, person) = (place / self.places.block, place % self.places.block);
        let shares = self.shares(block)?;
        let tier = self.tiers(block).map_or(0, |tiers| usize::from(tiers[person]));
        // In the worst-case mode everybody is charged alike, and the sum is public.
        let share = match self.stored.settings.mode {
            Mode::Individual => shares[person],
            Mode::WorstCase => u32::try_from(self.commit.worst_case).unwrap_or(FULL),
        };
        let spent = self.budgets[tier].spent(share);
        Ok(Some(Secret::new(Disclosure { tier: self.stored.settings.tiers[tier].clone(), share, spent })))
    }

    fn keys(&self) -> &[Key] {
        cast_slice(&self.map.bytes()[self.places.keys..][..self.places.people * size_of::<Key>()])
    }

    /// The keys of the people of a block.
    pub(crate) fn keys_of(&self, block: usize) -> &[Key] {
        &self.keys()[self.places.of(block)]
    }

    fn directory(&self) -> &[u32] {
        cast_slice(&self.map.bytes()[self.places.directory..][..((1 << self.places.bits) + 1) * size_of::<u32>()])
    }

    /// The place of a person.
    pub(crate) fn find(&self, key: Key) -> Option<usize> {
        let (directory, bucket) = (self.directory(), bucket(key, self.places.bits));
        find_from(self.keys(), directory[bucket] as usize, key)
    }

    /// The places of many people. Two passes, so that the memory is asked for many of them at once.
    pub(crate) fn find_all(&self, keys: &[Key], found: &mut Vec<Option<usize>>) {
        let (directory, all) = (self.directory(), self.keys());
        let starts: Vec<u32> = keys.iter().map(|&key| directory[bucket(key, self.places.bits)]).collect();
        found.clear();
        found.extend(keys.iter().zip(starts).map(|(&key, start)| find_from(all, start as usize, key)));
    }

    /// What the people of a block have spent.
    ///
    /// # Errors
    /// [`AccountsError::Damaged`] when the checksum is wrong.
    pub(crate) fn shares(&self, block: usize) -> Result<&[u32], AccountsError> {
        let place = &self.map.bytes()[self.places.place(block, self.current[block].0)..];
        let people = self.places.of(block).len();
        let data = &place[PAGE..][..people * size_of::<u32>() + if self.places.tiers { people } else { 0 }];
        if read_u32(place, 4) != block_checksum(block, self.current[block].1, data) {
            return Err(AccountsError::Damaged { path: self.path.clone(), problem: "a block is not whole" });
        }
        Ok(cast_slice(&data[..people * size_of::<u32>()]))
    }

    /// Which tiers the people of a block are in, when there are several. Covered by the checksum of [`Accounts::shares`].
    pub(crate) fn tiers(&self, block: usize) -> Option<&[u8]> {
        let people = self.places.of(block).len();
        let place = self.places.place(block, self.current[block].0) + PAGE + people * size_of::<u32>();
        self.places.tiers.then(|| &self.map.bytes()[place..][..people])
    }
}

/// Where a file is, or will be.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Gives a file that is whole its name, for good.
fn name(temporary: NamedTempFile, path: &Path, replace: bool) -> io::Result<()> {
    if replace {
        std::fs::set_permissions(temporary.path(), std::fs::metadata(path)?.permissions())?;
        temporary.persist(path)?;
    } else {
        temporary.persist_noclobber(path)?;
    }
    File::open(folder(path))?.sync_all()
}

/// The place of a key among sorted ones, from where its bucket begins.
fn find_from(keys: &[Key], start: usize, key: Key) -> Option<usize> {
    let mut place = start;
    while *keys.get(place)? < key {
        place += 1;
    }
    (keys[place] == key).then_some(place)
}

fn bucket(key: Key, bits: u32) -> usize {
    key.checked_shr(Key::BITS - bits).and_then(|bucket| usize::try_from(bucket).ok()).unwrap_or(0)
}

/// Where the keys of each bucket begin, and the end.
fn directory(keys: &[Key], bits: u32) -> Vec<u32> {
    let mut directory = vec![0; (1 << bits) + 1];
    for &key in keys {
        directory[bucket(key, bits) + 1] += 1;
    }
    for i in 1..directory.len() {
        directory[i] += directory[i - 1];
    }
    directory
}

const BLOCK_MAGIC: &[u8; 4] = b"pblk";

/// The generation of a block, if there is one.
fn block_generation(place: &[u8]) -> Option<u64> {
    place.starts_with(BLOCK_MAGIC).then(|| read_u64(place, 8))
}

fn block_checksum(block: usize, generation: u64, data: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&(block as u64).to_le_bytes());
    hasher.update(&generation.to_le_bytes());
    hasher.update(data);
    hasher.finalize()
}

/// A block as it is written: a page of header, then the data.
fn block_bytes(block: usize, generation: u64, spent: &[u32], tiers: Option<&[u8]>) -> Vec<u8> {
    let mut bytes = vec![0; PAGE];
    bytes.extend(cast_slice::<u32, u8>(spent));
    bytes.extend(tiers.unwrap_or_default());
    let checksum = block_checksum(block, generation, &bytes[PAGE..]);
    bytes[..4].copy_from_slice(BLOCK_MAGIC);
    bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
    bytes[8..16].copy_from_slice(&generation.to_le_bytes());
    bytes
}

/// All blocks, each in the first of its two places.
fn write_blocks(file: &File, places: &Places, generation: u64, people: &[(Key, u8)], spent: &[u32]) -> io::Result<()> {
    (0..places.count()).into_par_iter().try_for_each(|block| {
        let range = places.of(block);
        let tiers: Vec<u8> = people[range.clone()].iter().map(|&(_, tier)| tier).collect();
        let bytes = block_bytes(block, generation, &spent[range], places.tiers.then_some(&tiers[..]));
        file.write_all_at(&bytes, places.place(block, 0) as u64)
    })
}

impl Commit {
    /// Where it is written: not over the one before.
    const fn at(&self) -> usize {
        if self.generation.is_multiple_of(2) { 0 } else { PAGE }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::from(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        let numbers = [self.generation, self.rounds, self.worst_case, self.block_generations];
        let numbers: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        bytes.extend(crc32fast::hash(&numbers).to_le_bytes());
        bytes.extend(numbers);
        bytes
    }

    /// A page with two copies, in different sectors.
    fn page(&self) -> Vec<u8> {
        let mut half = self.bytes();
        half.resize(PAGE / 2, 0);
        half.repeat(2)
    }

    /// The newer of the whole copies in a page.
    fn read(page: &[u8]) -> Option<Self> {
        let copy = |bytes: &[u8]| {
            let number = |i: usize| read_u64(bytes, 16 + 8 * i);
            let commit =
                Self { generation: number(0), rounds: number(1), worst_case: number(2), block_generations: number(3) };
            bytes.starts_with(&commit.bytes()).then_some(commit)
        };
        page.chunks_exact(PAGE / 2).filter_map(copy).max_by_key(|commit| commit.generation)
    }
}

impl Stored {
    /// The beginning of the page that it is written to.
    fn page(&self) -> io::Result<Vec<u8>> {
        let text = serde_json::to_vec(self)?;
        if text.len() > PAGE - 8 {
            return Err(io::Error::other("the names of columns and tiers are too long"));
        }
        let mut page = Vec::from(u32::try_from(text.len()).unwrap_or(0).to_le_bytes());
        page.extend(crc32fast::hash(&text).to_le_bytes());
        page.extend(text);
        Ok(page)
    }

    fn read(page: &[u8]) -> Option<Self> {
        let text = page[8..].get(..read_u32(page, 0) as usize)?;
        if crc32fast::hash(text) != read_u32(page, 4) {
            return None;
        }
        let stored: Self = serde_json::from_slice(text).ok()?;
        let possible = u32::try_from(stored.people).is_ok() && (1..=256).contains(&stored.settings.tiers.len());
        possible.then_some(stored)
    }
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default())
}

fn read_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default())
}
