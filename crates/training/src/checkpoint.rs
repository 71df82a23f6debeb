//! A run on disk: where it stood, and what may have been drawn since.
//!
//! A run has a folder. `checkpoint.safetensors` is where it stood, replaced as a whole. `journal.jsonl` says what may have been drawn
//! after that: a line is on disk before its noise is drawn. So after a crash every step whose noise was drawn has been charged, and
//! perhaps a few that were announced and never drawn: an uncertain outcome counts as spent. The journal is locked by whoever runs.
//!
//! Neither file holds a seed. A checkpoint of a run with a budget for each example holds what each has spent: it is then as secret as
//! the examples.

use crate::model::Model;
use crate::pca::Projection;
use crate::policy::Observation;
use crate::run::{Entry, Journal, Position, State};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The format that is written.
const VERSION: u32 = 1;

/// About how often the journal waits for the disk.
const BETWEEN: Duration = Duration::from_millis(250);

/// Rounds that are announced at once, at most.
const AHEAD: u64 = 64;

/// What is wrong with a folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The operating system's.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// Another process runs here.
    #[error("{0}: another process trains in this folder")]
    Locked(PathBuf),
    /// Nothing to go on with.
    #[error("{0}: there is no run in this folder")]
    Nothing(PathBuf),
    /// There is a run here already.
    #[error("{0}: there is a run in this folder; resume it, or take another folder")]
    Taken(PathBuf),
    /// Not what was written.
    #[error("{path}: {what}")]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// In what respect.
        what: &'static str,
    },
}

/// The folder of a run.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// What the run was asked to do, in the words of whoever asked.
    config: String,
    /// The principal components that inputs are seen along, if any. They are in every checkpoint, so that they are never on disk
    /// without their charge.
    components: Option<Vec<f32>>,
    /// The number of the last checkpoint.
    number: u64,
    journal: Arc<Mutex<JournalFile>>,
}

/// What a folder says about a run that was interrupted.
#[derive(Clone, Debug, PartialEq)]
pub struct Interrupted {
    /// What it was asked to do.
    pub config: String,
    /// The principal components that inputs are seen along, if any.
    pub components: Option<Vec<f32>>,
    /// Where it stood.
    pub state: State,
    /// What may have been drawn since.
    pub lost: Vec<(Entry, u64)>,
}

/// All of a checkpoint that is not a tensor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header<'a> {
    version: u32,
    number: u64,
    config: Cow<'a, str>,
    position: Position,
    optimizer_steps: u64,
    observations: Cow<'a, [Observation]>,
    history: Cow<'a, [(Entry, u64)]>,
    digest: Option<u32>,
}

/// One line of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Line {
    /// The checkpoint that it goes on from; 0 before there is one. What stands above is in the checkpoint.
    After(u64),
    /// This may be drawn so many times.
    Announced(Entry, u64),
    /// Of the line before, only so many were drawn.
    Drawn(u64),
}

#[derive(Debug)]
struct JournalFile {
    path: PathBuf,
    file: File,
    /// What was announced last, how many of it are left, and how many were drawn.
    announced: Option<(Entry, u64, u64)>,
    /// When.
    since: Instant,
}

impl Folder {
    /// A folder for a new run. It is made if it is not there.
    ///
    /// # Errors
    /// [`FolderError`] when there is a run in it already.
    pub fn create(path: &Path, config: &str) -> Result<Self, FolderError> {
        std::fs::create_dir_all(path).map_err(|source| FolderError::Io { path: path.to_owned(), source })?;
        // Locked first, looked at then.
        let mut journal = JournalFile::open(path, true)?;
        let lines = journal.lines()?;
        if path.join(CHECKPOINT).exists() || lines.iter().any(|line| *line != Line::After(0)) {
            return Err(FolderError::Taken(path.to_owned()));
        }
        if lines.is_empty() {
            journal.restart(0)?;
        }
        let journal = Arc::new(Mutex::new(journal));
        Ok(Self { path: path.to_owned(), config: config.to_owned(), components: None, number: 0, journal })
    }

    /// The folder of a run that was interrupted, and where it stood.
    ///
    /// # Errors
    /// [`FolderError`] when there is none, it is running, or it is damaged.
    pub fn open(path: &Path) -> Result<(Self, Interrupted), FolderError> {
        let at = path.join(CHECKPOINT);
        if !at.exists() {
            return Err(FolderError::Nothing(path.to_owned()));
        }
        // Locked first, read then: a checkpoint and a journal that belong together.
        let mut journal = JournalFile::open(path, false)?;
        let bytes = std::fs::read(&at).map_err(|source| FolderError::Io { path: at.clone(), source })?;
        let (number, mut interrupted) = decode(&bytes).map_err(|what| FolderError::Damaged { path: at, what })?;
        interrupted.lost = journal.lost(number)?;
        let (config, components) = (interrupted.config.clone(), interrupted.components.clone());
        let folder = Self { path: path.to_owned(), config, components, number, journal: Arc::new(Mutex::new(journal)) };
        Ok((folder, interrupted))
    }

    /// Stores where a run stands; after that, and only then, the journal begins anew.
    ///
    /// # Errors
    /// [`FolderError`]; the checkpoint and the journal before are then still there.
    pub fn save(&mut self, state: &State) -> Result<(), FolderError> {
        let number = self.number + 1;
        let bytes = encode(number, &self.config, self.components.as_deref(), state)
            .map_err(|what| FolderError::Damaged { path: self.path.join(CHECKPOINT), what })?;
        self.replace(CHECKPOINT, &bytes)?;
        self.number = number;
        self.journal.lock().unwrap_or_else(PoisonError::into_inner).restart(number)
    }

    /// Replaces a file of the folder as a whole, and waits until it is on disk.
    ///
    /// # Errors
    /// [`FolderError`]; the file is then as it was.
    pub fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(&self.path)?;
            file.write_all(bytes)?;
            file.as_file().sync_all()?;
            file.persist(self.path.join(name)).map_err(|error| error.error)?;
            // The name is on disk when the folder is.
            File::open(&self.path)?.sync_all()
        };
        write().map_err(|source| FolderError::Io { path: self.path.join(name), source })
    }

    /// What the run was asked to do, in other words, from the next checkpoint on.
    pub fn rewrite_config(&mut self, config: &str) {
        config.clone_into(&mut self.config);
    }

    /// The principal components, from the next checkpoint on.
    pub fn keep_components(&mut self, components: &[f32]) {
        self.components = Some(components.to_vec());
    }

    /// The journal, for the run.
    #[must_use]
    pub fn journal(&self) -> Box<dyn Journal> {
        Box::new(SharedJournal(Arc::clone(&self.journal)))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

struct SharedJournal(Arc<Mutex<JournalFile>>);

impl Journal for SharedJournal {
    fn before(&mut self, entry: &Entry, more: &mut dyn FnMut(u64) -> u64) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).before(entry, more)
    }
}

const CHECKPOINT: &str = "checkpoint.safetensors";
const JOURNAL: &str = "journal.jsonl";

impl JournalFile {
    /// Locked. A run that was interrupted has one: without it nobody knows what was drawn.
    fn open(folder: &Path, is_new: bool) -> Result<Self, FolderError> {
        let path = folder.join(JOURNAL);
        let io = |source: io::Error| {
            if source.kind() == io::ErrorKind::NotFound && !is_new {
                let what = "the journal is gone, and with it what was drawn after the last checkpoint";
                return FolderError::Damaged { path: path.clone(), what };
            }
            FolderError::Io { path: path.clone(), source }
        };
        let file = File::options().read(true).write(true).create(is_new).truncate(false).open(&path).map_err(io)?;
        file.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => FolderError::Locked(folder.to_owned()),
            TryLockError::Error(source) => FolderError::Io { path: path.clone(), source },
        })?;
        Ok(Self { path, file, announced: None, since: Instant::now() })
    }

    fn damaged(&self, what: &'static str) -> FolderError {
        FolderError::Damaged { path: self.path.clone(), what }
    }

    /// All lines. A last one without an end was never announced, so its noise was not drawn: it is cut off.
    fn lines(&mut self) -> Result<Vec<Line>, FolderError> {
        let mut text = String::new();
        let mut read = || {
            self.file.rewind()?;
            self.file.read_to_string(&mut text)?;
            let whole = text.rfind('\n').map_or(0, |end| end + 1);
            text.truncate(whole);
            self.file.set_len(whole as u64)?;
            self.file.seek(io::SeekFrom::End(0))
        };
        read().map_err(|source| FolderError::Io { path: self.path.clone(), source })?;
        let parse = |line| serde_json::from_str(line).map_err(|_| self.damaged("a line is not what was written"));
        text.lines().map(parse).collect()
    }

    /// What may have been drawn after the checkpoint.
    fn lost(&mut self, number: u64) -> Result<Vec<(Entry, u64)>, FolderError> {
        let lines = self.lines()?;
        let last = lines.iter().rposition(|line| matches!(line, Line::After(_)));
        let Some((Some(Line::After(after)), rest)) = last.map(|last| (lines.get(last), &lines[last + 1..])) else {
            return Err(self.damaged("it was emptied, and with it what was drawn after the last checkpoint is gone"));
        };
        if *after + 1 == number {
            // A journal of the checkpoint before: this one has all of it.
            return Ok(Vec::new());
        }
        if *after != number {
            return Err(self.damaged("it does not belong to the checkpoint beside it"));
        }
        let mut lost: Vec<(Entry, u64)> = Vec::new();
        for line in rest {
            match (line, lost.last_mut()) {
                (Line::Announced(entry, count), _) => lost.push((*entry, *count)),
                (Line::Drawn(count), Some(last)) if *count <= last.1 => last.1 = *count,
                (Line::Drawn(_) | Line::After(_), _) => {
                    return Err(self.damaged("a line is where none was written"));
                }
            }
        }
        lost.retain(|(_, count)| *count > 0);
        Ok(lost)
    }

    /// From here on after a checkpoint that is on disk. Nothing is taken out: an empty journal is a damaged one.
    fn restart(&mut self, number: u64) -> Result<(), FolderError> {
        let line = serde_json::to_string(&Line::After(number)).unwrap_or_default();
        self.announced = None;
        let mut write = || {
            writeln!(self.file, "{line}")?;
            self.file.sync_all()
        };
        write().map_err(|source| FolderError::Io { path: self.path.clone(), source })
    }

    fn before(&mut self, entry: &Entry, more: &mut dyn FnMut(u64) -> u64) -> io::Result<()> {
        if let Some((announced, left @ 1.., drawn)) = &mut self.announced
            && announced == entry
        {
            *left -= 1;
            *drawn += 1;
            return Ok(());
        }
        // As many as fit between two waits for the disk, once it is known how long one takes.
        #[expect(clippy::cast_precision_loss, reason = "at most AHEAD")]
        let each = match self.announced {
            Some((Entry::Round { .. }, _, drawn)) => self.since.elapsed().as_secs_f64() / drawn as f64,
            Some((Entry::Count { .. } | Entry::Allowance | Entry::Components { .. } | Entry::Selection { .. }, ..))
            | None => f64::INFINITY,
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates; at most AHEAD")]
        let ahead = ((BETWEEN.as_secs_f64() / each.max(1e-9)) as u64).clamp(1, AHEAD);
        let count = 1 + if ahead > 1 { more(ahead - 1).min(ahead - 1) } else { 0 };
        let mut text = String::new();
        if let Some((_, 1.., drawn)) = self.announced {
            text += &(serde_json::to_string(&Line::Drawn(drawn))? + "\n");
        }
        text += &(serde_json::to_string(&Line::Announced(*entry, count))? + "\n");
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()?;
        self.announced = Some((*entry, count - 1, 1));
        self.since = Instant::now();
        Ok(())
    }
}

/// The bytes of a checkpoint.
fn encode(number: u64, config: &str, components: Option<&[f32]>, state: &State) -> Result<Vec<u8>, &'static str> {
    let floats = |numbers: &[f32]| numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
    let (optimizer_steps, first, second) = &state.optimizer;
    let mut tensors = vec![
        ("parameters", Dtype::F32, state.parameters.len(), floats(&state.parameters)),
        ("optimizer.first", Dtype::F32, first.len(), floats(first)),
        ("optimizer.second", Dtype::F32, second.len(), floats(second)),
    ];
    if let Some(spent) = &state.spent {
        let bytes = spent.iter().flat_map(|share| share.to_le_bytes()).collect();
        tensors.push(("secret.spent", Dtype::U32, spent.len(), bytes));
    }
    if let Some(components) = components {
        tensors.push(("components", Dtype::F32, components.len(), floats(components)));
    }
    let header = Header {
        version: VERSION,
        number,
        config: config.into(),
        position: state.position,
        optimizer_steps: *optimizer_steps,
        observations: (&state.observations).into(),
        history: (&state.history).into(),
        digest: state.digest,
    };
    let header = serde_json::to_string(&header).map_err(|_| "a number cannot be written")?;
    let parts = std::iter::once(header.as_bytes()).chain(tensors.iter().map(|(_, _, _, bytes)| bytes.as_slice()));
    let crc32 = checksum(parts).to_string();
    let views = tensors.iter().map(|(name, kind, length, bytes)| {
        TensorView::new(*kind, vec![*length], bytes).map(|view| (*name, view)).map_err(|_| "a tensor cannot be written")
    });
    let views = views.collect::<Result<Vec<_>, _>>()?;
    let metadata = HashMap::from([("paygo".to_owned(), header), ("crc32".to_owned(), crc32)]);
    safetensors::serialize(views, Some(metadata)).map_err(|_| "it cannot be written")
}

fn checksum<'a>(parts: impl Iterator<Item = &'a [u8]>) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.for_each(|part| hasher.update(part));
    hasher.finalize()
}

/// The number, the config and the state.
fn decode(bytes: &[u8]) -> Result<(u64, Interrupted), &'static str> {
    let damaged = "it is not a checkpoint, or it is damaged";
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|_| damaged)?;
    let entry = |name: &str| metadata.metadata().as_ref().and_then(|metadata| metadata.get(name)).ok_or(damaged);
    let (text, crc32) = (entry("paygo")?, entry("crc32")?);
    let header: Header<'_> = serde_json::from_str(text).map_err(|_| damaged)?;
    if header.version != VERSION {
        return Err("it was written by another version of paygo");
    }
    let tensors = SafeTensors::deserialize(bytes).map_err(|_| damaged)?;
    let tensor = |name: &str, kind: Dtype| match tensors.tensor(name) {
        Ok(tensor) if tensor.dtype() == kind => Ok(tensor.data()),
        Ok(_) | Err(_) => Err(damaged),
    };
    let names = ["parameters", "optimizer.first", "optimizer.second"];
    let [values, first, second] = [0, 1, 2].map(|index: usize| tensor(names[index], Dtype::F32));
    let (values, first, second) = (values?, first?, second?);
    let optional =
        |name: &'static str, kind: Dtype| tensors.names().contains(&name).then(|| tensor(name, kind)).transpose();
    let (spent, components) = (optional("secret.spent", Dtype::U32)?, optional("components", Dtype::F32)?);
    let parts = [text.as_bytes(), values, first, second].into_iter().chain(spent).chain(components);
    if checksum(parts).to_string() != *crc32 {
        return Err(damaged);
    }
    let floats =
        |bytes: &[u8]| bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect::<Vec<f32>>();
    let state = State {
        parameters: floats(values),
        optimizer: (header.optimizer_steps, floats(first), floats(second)),
        position: header.position,
        observations: header.observations.into_owned(),
        history: header.history.into_owned(),
        digest: header.digest,
        spent: spent.map(|bytes| bytes.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()),
    };
    let (config, components) = (header.config.into_owned(), components.map(floats));
    Ok((header.number, Interrupted { config, components, state, lost: Vec::new() }))
}

/// A model's parameters as a safetensors file, tensor by tensor, with a note for whoever reads it (`paygo` of its metadata).
///
/// With a projection, inputs are first seen along its `components`, `directions × numbers of an input`. Weights of a linear layer are stored `inputs × outputs`, those of a convolution `height × width × inputs × outputs`.
///
/// # Errors
/// When the parameters are not the model's.
pub fn export<M: Model + ?Sized>(
    model: &M,
    parameters: &[f32],
    projection: Option<&Projection>,
    note: &str,
) -> Result<Vec<u8>, &'static str> {
    if parameters.len() != model.parameters() {
        return Err("the model has another number of parameters");
    }
    let bytes: Vec<u8> = parameters.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut start = 0;
    let mut views = Vec::new();
    for tensor in model.tensors() {
        let end = start + 4 * tensor.len();
        let view = TensorView::new(Dtype::F32, tensor.shape.clone(), &bytes[start..end]);
        views.push((tensor.name.clone(), view.map_err(|_| "a tensor cannot be written")?));
        start = end;
    }
    let directions: Vec<u8> =
        projection.iter().flat_map(|one| one.components()).flat_map(|x| x.to_le_bytes()).collect();
    if let Some(projection) = projection {
        let view = TensorView::new(Dtype::F32, vec![projection.count(), projection.shape().len()], &directions);
        views.push(("components".to_owned(), view.map_err(|_| "a tensor cannot be written")?));
    }
    let notes = HashMap::from([("paygo".to_owned(), note.to_owned())]);
    safetensors::serialize(views, Some(notes)).map_err(|_| "it cannot be written")
}

/// The note of a model file, and the principal components that its inputs are seen along, if there are any.
///
/// # Errors
/// When it is not a model that [`export`] wrote.
pub fn described(bytes: &[u8]) -> Result<(String, Option<Vec<f32>>), String> {
    let wrong = |error: safetensors::SafeTensorError| format!("not a safetensors file: {error}");
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(wrong)?;
    let note = header.metadata().as_ref().and_then(|notes| notes.get("paygo")).cloned();
    let tensors = SafeTensors::deserialize(bytes).map_err(wrong)?;
    let components = tensors.tensor("components").ok().filter(|found| found.dtype() == Dtype::F32);
    let numbers = |found: TensorView<'_>| found.data().as_chunks().0.iter().map(|x| f32::from_le_bytes(*x)).collect();
    Ok((note.ok_or("no model of paygo: its metadata have no note")?, components.map(numbers)))
}

/// The parameters of a model from a safetensors file that has all of its tensors, by name and shape.
///
/// # Errors
/// What is missing or does not fit.
pub fn import<M: Model + ?Sized>(model: &M, bytes: &[u8]) -> Result<Vec<f32>, String> {
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| format!("not a safetensors file: {error}"))?;
    let mut parameters = Vec::with_capacity(model.parameters());
    for tensor in model.tensors() {
        let found = tensors.tensor(&tensor.name).map_err(|_| format!("{} is missing", tensor.name))?;
        if found.dtype() != Dtype::F32 || found.shape() != tensor.shape {
            let (given, kind) = (found.shape(), found.dtype());
            return Err(format!("{} has shape {given:?} of {kind:?}; expected {:?} of F32", tensor.name, tensor.shape));
        }
        parameters.extend(found.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
    }
    Ok(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batching::Batching;

    const ROUND: Entry =
        Entry::Round { noise_multiplier: 1.1, batching: Batching::Poisson { sampling_probability: 0.1 } };
    const COUNT: Entry = Entry::Count { noise_std: 100.0 };

    fn state(steps: u64) -> State {
        State {
            parameters: vec![0.5, -1.25, f32::MIN_POSITIVE],
            optimizer: (steps, vec![1.0, 2.0, 3.0], vec![]),
            position: Position { epoch: 1, rounds: 2, steps },
            observations: vec![Observation::PublicAccuracy(0.25), Observation::NoisyCount { count: 0.1, lasts: true }],
            history: vec![(ROUND, 12), (COUNT, 1)],
            spent: Some(vec![0, 7, u32::MAX - 1]),
            digest: Some(17),
        }
    }

    fn open(path: &Path) -> Result<Interrupted, FolderError> {
        Folder::open(path).map(|(_, interrupted)| interrupted)
    }

    #[test]
    fn what_was_stored_comes_back() {
        let place = tempfile::tempdir().expect("a folder");
        let mut folder = Folder::create(place.path(), "a config").expect("a folder");
        folder.save(&state(5)).expect("saved");
        folder.keep_components(&[0.6, 0.8]);
        folder.save(&state(6)).expect("saved");
        assert!(matches!(open(place.path()), Err(FolderError::Locked(_))));
        drop(folder);
        let back = open(place.path()).expect("opened");
        let expected =
            Interrupted { config: "a config".into(), components: Some(vec![0.6, 0.8]), state: state(6), lost: vec![] };
        assert_eq!(back, expected);
        assert!(matches!(Folder::create(place.path(), "x"), Err(FolderError::Taken(_))));
    }

    /// Without its journal nobody knows what was drawn; and a journal without its checkpoint is no empty folder.
    #[test]
    fn a_journal_and_its_checkpoint_belong_together() {
        let place = tempfile::tempdir().expect("a folder");
        assert!(matches!(open(place.path()), Err(FolderError::Nothing(_))));
        let mut folder = Folder::create(place.path(), "").expect("a folder");
        folder.save(&state(5)).expect("saved");
        folder.journal().before(&ROUND, &mut |most| most).expect("written");
        drop(folder);
        let journal = place.path().join(JOURNAL);
        std::fs::rename(&journal, place.path().join("aside")).expect("moved");
        assert!(matches!(open(place.path()), Err(FolderError::Damaged { .. })));
        std::fs::rename(place.path().join("aside"), &journal).expect("moved");
        std::fs::remove_file(place.path().join(CHECKPOINT)).expect("removed");
        assert!(matches!(Folder::create(place.path(), ""), Err(FolderError::Taken(_))));
        // Nothing was drawn where there was no checkpoint yet.
        let place = tempfile::tempdir().expect("a folder");
        drop(Folder::create(place.path(), "").expect("a folder"));
        Folder::create(place.path(), "").expect("a folder");
    }

    /// Nothing is announced ahead before it is known how long a round takes, nor of what comes once.
    #[test]
    fn little_is_announced_of_what_is_slow_or_comes_once() {
        let place = tempfile::tempdir().expect("a folder");
        let mut folder = Folder::create(place.path(), "").expect("a folder");
        folder.save(&state(5)).expect("saved");
        let mut journal = folder.journal();
        for entry in [ROUND, COUNT, ROUND] {
            journal.before(&entry, &mut |most| most).expect("written");
        }
        drop((folder, journal));
        assert_eq!(open(place.path()).expect("opened").lost, [(ROUND, 1), (COUNT, 1), (ROUND, 1)]);
    }

    #[test]
    fn what_may_have_been_drawn_is_lost() {
        let place = tempfile::tempdir().expect("a folder");
        let mut folder = Folder::create(place.path(), "").expect("a folder");
        folder.save(&state(5)).expect("saved");
        let mut journal = folder.journal();
        for entry in [ROUND, ROUND, ROUND, COUNT] {
            journal.before(&entry, &mut |most| most.min(9)).expect("written");
        }
        drop((folder, journal));
        let lost = open(place.path()).expect("opened").lost;
        let total = |wanted| lost.iter().filter(|(entry, _)| *entry == wanted).map(|(_, count)| count).sum::<u64>();
        // As many as were announced, and what was announced and not drawn before something else came is known.
        assert_eq!(total(ROUND), 3);
        assert!((1..=10).contains(&total(COUNT)), "{lost:?}");
        // After the next checkpoint it is part of the history.
        let (mut folder, _) = Folder::open(place.path()).expect("opened");
        folder.save(&state(9)).expect("saved");
        drop(folder);
        assert_eq!(open(place.path()).expect("opened").lost, []);
    }

    /// Cut off anywhere, a journal never says that less was drawn than was announced by a whole line; and an empty one is damaged.
    #[test]
    fn a_journal_cut_off_anywhere_is_read_to_its_last_whole_line() {
        let place = tempfile::tempdir().expect("a folder");
        let mut folder = Folder::create(place.path(), "").expect("a folder");
        folder.save(&state(5)).expect("saved");
        let mut journal = folder.journal();
        journal.before(&ROUND, &mut |_| 0).expect("written");
        journal.before(&COUNT, &mut |_| 0).expect("written");
        drop((folder, journal));
        let at = place.path().join(JOURNAL);
        let whole = std::fs::read(&at).expect("a journal");
        for length in 0..=whole.len() {
            std::fs::write(&at, &whole[..length]).expect("cut");
            let lines = whole[..length].iter().filter(|&&byte| byte == b'\n').count();
            match open(place.path()) {
                // Two lines are about checkpoints.
                Ok(back) => assert_eq!(back.lost.len(), lines.saturating_sub(2), "at {length}"),
                Err(error) => {
                    assert!(lines == 0 && matches!(error, FolderError::Damaged { .. }), "at {length}: {error}")
                }
            }
        }
    }

    #[test]
    fn a_journal_of_the_checkpoint_before_is_part_of_this_one() {
        let place = tempfile::tempdir().expect("a folder");
        let mut folder = Folder::create(place.path(), "").expect("a folder");
        folder.save(&state(5)).expect("saved");
        folder.journal().before(&ROUND, &mut |_| 0).expect("written");
        let old = std::fs::read(place.path().join(JOURNAL)).expect("a journal");
        folder.save(&state(6)).expect("saved");
        // As if the process had died between the checkpoint and the new journal.
        std::fs::write(place.path().join(JOURNAL), &old).expect("written");
        drop(folder);
        assert_eq!(open(place.path()).expect("opened").lost, []);
        // A journal from elsewhere is not believed.
        std::fs::write(place.path().join(JOURNAL), "{\"after\":7}\n").expect("written");
        assert!(matches!(open(place.path()), Err(FolderError::Damaged { .. })));
        std::fs::write(place.path().join(JOURNAL), "nonsense\n").expect("written");
        assert!(matches!(open(place.path()), Err(FolderError::Damaged { .. })));
    }

    #[test]
    fn a_damaged_checkpoint_is_noticed() {
        let place = tempfile::tempdir().expect("a folder");
        let mut folder = Folder::create(place.path(), "").expect("a folder");
        folder.save(&state(5)).expect("saved");
        drop(folder);
        let at = place.path().join(CHECKPOINT);
        let whole = std::fs::read(&at).expect("a checkpoint");
        for position in (0..whole.len()).step_by(7).chain(whole.len() - 12..whole.len()) {
            let mut bytes = whole.clone();
            bytes[position] ^= 1;
            std::fs::write(&at, &bytes).expect("written");
            match open(place.path()) {
                Err(FolderError::Damaged { .. }) => {}
                Err(error) => panic!("{error}"),
                // Spaces that fill the header up, and the like.
                Ok(back) => assert_eq!(back.state, state(5), "at {position}"),
            }
        }
    }
}
