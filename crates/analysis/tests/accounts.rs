//! Accounts in a file: they last, they are locked, and no crash leaves half a round or an under-charged person.

mod common;

use common::{ask_plainly, ask_with, layout, noise, query, settings, share, sum, table};
use paygo_accounting::individual::FULL;
use paygo_analysis::{
    Accounts, AccountsError, Layout, Manner, Mode, Query, RoundError, Settings, Table, open_accounts,
};
use std::path::{Path, PathBuf};

/// More people than one block holds.
const MANY: i64 = 70_000;

fn people(n: i64) -> Table {
    let rows: Vec<(i64, f64, &str)> = (0..n).map(|id| (id, 10.0, "x")).collect();
    table(&rows)
}

/// Everybody pays a hundredth of their budget.
fn hundredth() -> Layout {
    layout(vec![query(sum(0.0, 10.0), 50.0)])
}

const BUDGET: &str = "rho=2";

fn open(path: &Path, table: &Table) -> Accounts {
    open_accounts(Some(path), table, &settings(BUDGET), &|_| ()).expect("accounts")
}

fn reopened(path: &Path) -> Result<Accounts, AccountsError> {
    Accounts::open(path, Some(&settings(BUDGET)))
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("people.accounts")
    }
}

#[test]
fn charges_outlive_the_process_that_made_them() {
    let (folder, table) = (Folder::new(), people(MANY));
    let path = folder.file();
    for round in 1..=3u32 {
        let mut accounts = open(&path, &table);
        ask_plainly(&table, &hundredth(), &mut accounts);
        drop(accounts);
        let accounts = reopened(&path).expect("accounts");
        assert_eq!(accounts.rounds(), u64::from(round));
        for id in ["0", "69999", "33333"] {
            assert_eq!(share(&accounts, id), FULL / 100 * round);
        }
        assert!(accounts.disclose("70000").expect("whole").is_none());
    }
}

#[test]
fn one_process_at_a_time() {
    let (folder, table) = (Folder::new(), people(10));
    let accounts = open(&folder.file(), &table);
    assert!(matches!(reopened(&folder.file()), Err(AccountsError::Locked(_))));
    drop(accounts);
    assert!(reopened(&folder.file()).is_ok());
}

#[test]
fn settings_cannot_change() {
    let (folder, table) = (Folder::new(), people(10));
    drop(open(&folder.file(), &table));
    let tries: [(Settings, &str); 3] = [
        (settings("rho=3"), "the budget is rho=2, and rho=3 was asked for"),
        (
            Settings { mode: Mode::WorstCase, ..settings(BUDGET) },
            "the mode is individual, and worst-case was asked for",
        ),
        (
            Settings { person: "user".into(), ..settings(BUDGET) },
            "the person column is `person`, and `user` was asked for",
        ),
    ];
    for (settings, said) in tries {
        let error = Accounts::open(&folder.file(), Some(&settings)).expect_err("changed").to_string();
        assert!(error.contains(said), "{error}");
    }
    // The same number written otherwise is the same budget.
    assert!(Accounts::open(&folder.file(), Some(&settings("rho=2.00"))).is_ok());
}

#[test]
fn another_dataset_is_noticed_and_newcomers_are_enrolled_when_said_so() {
    let (folder, ten) = (Folder::new(), people(10));
    let mut accounts = open(&folder.file(), &ten);
    ask_plainly(&ten, &hundredth(), &mut accounts);
    for other in [people(11), people(9), table(&[(77, 1.0, "x")])] {
        let error = ask_with(&other, &hundredth(), &mut accounts, Manner::default()).expect_err("others");
        assert!(matches!(error, RoundError::OtherPeople), "{error}");
    }
    assert_eq!(accounts.rounds(), 1);
    let changed = Manner { people_changed: true, ..Manner::default() };
    ask_with(&people(12), &hundredth(), &mut accounts, changed).expect("answers");
    ask_with(&people(9), &hundredth(), &mut accounts, changed).expect("answers");
    drop(accounts);
    let accounts = reopened(&folder.file()).expect("accounts");
    // The first nine were always there, the tenth left, the last two joined for one round.
    for (id, rounds) in [("0", 3), ("8", 3), ("9", 2), ("10", 1), ("11", 1)] {
        assert_eq!(share(&accounts, id), FULL / 100 * rounds, "{id}");
    }
    assert_eq!(accounts.rounds(), 3);
    assert!(matches!(reopened(&folder.file()), Err(AccountsError::Locked(_))), "the lock goes with the new file");
}

/// The bytes of the file before and after a round, and where they differ: blocks first, commit records last.
fn one_round(path: &Path) -> (Vec<u8>, Vec<u8>) {
    let table = people(MANY);
    let mut accounts = open(path, &table);
    ask_plainly(&table, &hundredth(), &mut accounts);
    let before = std::fs::read(path).expect("bytes");
    ask_plainly(&table, &hundredth(), &mut accounts);
    let after = std::fs::read(path).expect("bytes");
    (before, after)
}

const PAGE: usize = 4096;

fn pages_that_differ(a: &[u8], b: &[u8]) -> Vec<usize> {
    assert_eq!(a.len(), b.len());
    (0..a.len() / PAGE).filter(|page| a[page * PAGE..][..PAGE] != b[page * PAGE..][..PAGE]).collect()
}

/// The second of two rounds, to be cut off anywhere.
struct SecondRound {
    _folder: Folder,
    path: PathBuf,
    before: Vec<u8>,
    after: Vec<u8>,
    /// Pages that it changed: blocks, and the page of commit records.
    blocks: Vec<usize>,
    commit: usize,
}

impl SecondRound {
    fn new() -> Self {
        let folder = Folder::new();
        let path = folder.file();
        let (before, after) = one_round(&path);
        let changed = pages_that_differ(&before, &after);
        let (commits, blocks): (Vec<usize>, Vec<usize>) = changed.iter().partition(|&&page| page < 2);
        assert!(commits.len() == 1 && blocks.len() > 60, "{commits:?} {blocks:?}");
        Self { _folder: folder, path, before, after, blocks, commit: commits[0] }
    }

    /// What a crash leaves behind reads as so many whole rounds.
    #[track_caller]
    fn reads_as(&self, bytes: &[u8], rounds: u32) {
        std::fs::write(&self.path, bytes).expect("written");
        let accounts = reopened(&self.path).expect("accounts");
        assert_eq!(accounts.rounds(), u64::from(rounds));
        for id in ["0", "1", "69999", "35000", "12345"] {
            assert_eq!(share(&accounts, id), FULL / 100 * rounds);
        }
    }

    /// The first bytes of a page reach the disk.
    fn write(&self, bytes: &mut [u8], page: usize, length: usize) {
        bytes[page * PAGE..][..length].copy_from_slice(&self.after[page * PAGE..][..length]);
    }

    /// All blocks reached the disk, the commit record did not.
    fn uncommitted(&self) -> Vec<u8> {
        let mut bytes = self.before.clone();
        self.blocks.iter().for_each(|&page| self.write(&mut bytes, page, PAGE));
        bytes
    }
}

/// Some of the pages of the blocks reached the disk, in any order, the last one torn; the commit record did not.
#[test]
fn a_crash_among_the_blocks_leaves_the_round_before() {
    let round = SecondRound::new();
    for seed in 0..20u64 {
        let mut bytes = round.before.clone();
        for (i, &page) in round.blocks.iter().enumerate() {
            let chosen =
                (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(seed.wrapping_mul(0xbf58_476d_1ce4_e5b9));
            if (chosen ^ chosen >> 31).count_ones().is_multiple_of(2) {
                round.write(&mut bytes, page, PAGE);
            }
        }
        let torn = round.blocks[usize::try_from(seed).expect("small") * round.blocks.len() / 20];
        round.write(&mut bytes, torn, 100);
        round.reads_as(&bytes, 1);
    }
}

/// A torn commit record: the round before. The whole record: the round.
#[test]
fn a_crash_at_the_commit_leaves_a_whole_round() {
    let round = SecondRound::new();
    let mut bytes = round.uncommitted();
    round.reads_as(&bytes, 1);
    for torn in [9, 13, 20, 30, 47, 48, 512, 2048, 2060] {
        let mut bytes = bytes.clone();
        round.write(&mut bytes, round.commit, torn);
        // The first copy is whole already, or else the second is still the older one.
        let whole = bytes[round.commit * PAGE..][..48] == round.after[round.commit * PAGE..][..48];
        round.reads_as(&bytes, if whole { 2 } else { 1 });
    }
    round.write(&mut bytes, round.commit, PAGE);
    assert_eq!(bytes, round.after);
    round.reads_as(&bytes, 2);
}

/// Also by one that touches only some of its blocks.
#[test]
fn a_crashed_round_is_simply_done_again() {
    let round = SecondRound::new();
    let (path, bytes, table) = (&round.path, round.uncommitted(), people(MANY));
    let only_seven =
        Query::new("q", sum(0.0, 10.0), Some("person = 7".parse().expect("c")), noise(50.0)).expect("a query");
    for (question, others) in [(hundredth(), 2), (layout(vec![only_seven]), 1)] {
        std::fs::write(path, &bytes).expect("written");
        ask_plainly(&table, &question, &mut open(path, &table));
        for _ in 0..2 {
            let accounts = reopened(path).expect("accounts");
            assert_eq!(share(&accounts, "7"), FULL / 100 * 2);
            assert!(["0", "69999", "35000", "12345"].iter().all(|id| share(&accounts, id) == FULL / 100 * others));
        }
        ask_plainly(&table, &hundredth(), &mut open(path, &table));
        assert_eq!(share(&reopened(path).expect("accounts"), "7"), FULL / 100 * 3);
    }
}

#[test]
fn accounts_behind_a_link_stay_one_file() {
    let (folder, ten) = (Folder::new(), people(10));
    drop(open(&folder.file(), &ten));
    let link = folder.0.path().join("link");
    std::os::unix::fs::symlink(folder.file(), &link).expect("a link");
    let changed = Manner { people_changed: true, ..Manner::default() };
    ask_with(&people(12), &hundredth(), &mut open(&link, &ten), changed).expect("answers");
    assert!(std::fs::symlink_metadata(&link).expect("there").is_symlink());
    assert_eq!(share(&reopened(&folder.file()).expect("accounts"), "11"), FULL / 100);
    std::fs::hard_link(folder.file(), folder.0.path().join("hard")).expect("a link");
    let error = ask_with(&people(13), &hundredth(), &mut open(&folder.file(), &ten), changed).expect_err("two names");
    assert!(error.to_string().contains("hard links"), "{error}");
}

#[test]
fn damage_is_noticed() {
    let folder = Folder::new();
    let path = folder.file();
    let (before, after) = one_round(&path);
    let table = people(MANY);
    let damaged = |bytes: &[u8], said: &str| {
        std::fs::write(&path, bytes).expect("written");
        let error = match reopened(&path) {
            Err(error) => error.to_string(),
            Ok(mut accounts) => {
                let error =
                    ask_with(&table, &hundredth(), &mut accounts, Manner::default()).expect_err(said).to_string();
                drop(accounts);
                error
            }
        };
        assert!(error.contains(said), "{error}, expected {said}");
    };
    damaged(b"person,amount\n1,2\n", "not a file of accounts");
    damaged(&after[..after.len() - PAGE], "shorter or longer");
    damaged(&[&after[..], &[0; PAGE]].concat(), "shorter or longer");
    // A bit of somebody's share, of the settings, of both commit records.
    let blocks: Vec<usize> = pages_that_differ(&before, &after).into_iter().filter(|&page| page > 2).collect();
    let flipped = |at: &[usize]| {
        let mut bytes = after.clone();
        at.iter().for_each(|&at| bytes[at] ^= 0x10);
        bytes
    };
    damaged(&flipped(&[(blocks[1]) * PAGE + 77]), "a block is not whole");
    damaged(&flipped(&[2 * PAGE + 40]), "the settings are not whole");
    // One copy of a commit record may rot; when both do, it is not known which round was the last.
    for page in [0, PAGE] {
        std::fs::write(&path, flipped(&[page + 20])).expect("written");
        assert_eq!(reopened(&path).expect("accounts").rounds(), 2);
        damaged(&flipped(&[page + 20, page + PAGE / 2 + 20]), "a commit record is not whole");
    }
    for page in [0, PAGE] {
        let mut zeroed = after.clone();
        zeroed[page..][..PAGE].fill(0);
        damaged(&zeroed, "a commit record is not whole");
    }
    damaged(&flipped(&[0, PAGE]), "not a file of accounts");
    // A disk that lost a block, or brought an old one back, after it said that all was written.
    let mut lost = after.clone();
    lost[blocks[0] * PAGE..][..PAGE].copy_from_slice(&before[blocks[0] * PAGE..][..PAGE]);
    damaged(&lost, "a block is older than the last round");
    // Another version.
    let mut newer = after.clone();
    for copy in [0, PAGE / 2, PAGE, PAGE + PAGE / 2] {
        newer[copy + 8] = 9;
    }
    damaged(&newer, "format 9; this program reads format 1");
}

#[test]
fn accounts_that_are_there_are_never_overwritten() {
    let (folder, table) = (Folder::new(), people(3));
    std::fs::write(folder.file(), "precious").expect("written");
    let error = open_accounts(Some(&folder.file()), &table, &settings(BUDGET), &|_| ()).expect_err("not accounts");
    assert!(error.to_string().contains("not a file of accounts"), "{error}");
    assert_eq!(std::fs::read(folder.file()).expect("there"), b"precious");
}
