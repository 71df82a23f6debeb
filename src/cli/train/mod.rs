//! `paygo train`: private training that cannot overspend.

mod config;
mod metrics;
mod model;
mod privacy;
mod report;
mod shared;

pub(crate) use report::spent;

use super::ledger::{Named, PlaceArguments};
use super::output::{print, print_json, shown_up};
use anyhow::Context;
use clap::Args;
use config::Config;
use indicatif::{ProgressBar, ProgressStyle};
use metrics::{METRICS, Metrics};
use paygo_accounting::filter::{AnyRule, Rule as _};
use paygo_accounting::guarantee::Guarantee;
use paygo_accounting::odometer::{Odometer, VilleMixture};
use paygo_accounting::params::Delta;
use paygo_accounting::prior::Prior;
use paygo_accounting::privacy_loss::tightest_of_all;
use paygo_noise::Source;
use paygo_training::batching::Sampler;
use paygo_training::checkpoint::{Folder, export, import};
use paygo_training::data::{Public, sets::Split};
use paygo_training::gate::Gate;
use paygo_training::model::{Model as _, Network};
use paygo_training::pca::Projection;
use paygo_training::personal::Spending;
use paygo_training::run::{Ending, Plan, Privacy, Run, Step, evaluate};
use privacy::{Checked, no_policy};
use serde_json::{Value, json};
use shared::SharedBudget;
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

#[derive(Args)]
#[command(
    after_help = "Every step is charged to a filter before its noise is drawn; when the budget does not cover another, training ends. The\nfolder --out gets the model (model.safetensors), metrics (metrics.jsonl), a page with curves (report.html) and a checkpoint,\nfrom which --resume goes on after a crash or Ctrl-C, with every step charged whose noise may have been drawn.\nExit 0: trained, 130: interrupted, 2: something was wrong.\n\nExamples:\n  paygo train examples/demo.toml\n  paygo train examples/mnist.toml --data DIR --out runs/mnist\n  paygo train --resume runs/mnist\ndocs/training.md has every word of the file."
)]
pub(crate) struct Arguments {
    /// What to train, on what, and within which budget
    #[arg(value_name = "CONFIG.toml", required_unless_present = "resume", conflicts_with = "resume")]
    config: Option<PathBuf>,
    /// Go on with the run in this folder
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
    /// Where public data sets are
    #[arg(long, value_name = "DIR", env = "PAYGO_DATA")]
    data: Option<PathBuf>,
    /// Where the model, the metrics, the report and the checkpoint go; it is made
    #[arg(long, value_name = "DIR", default_value = "trained", conflicts_with = "resume")]
    out: PathBuf,
    #[command(flatten)]
    place: PlaceArguments,
    /// Seconds between two checkpoints: so much training is lost at most, though charged, when the process is killed
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    checkpoint_every: u64,
    /// NOT PRIVATE: the same noise every time; whoever knows the seed can take it off. For tests
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// NOT PRIVATE: show losses and what each example has spent. For research on public data
    #[arg(long)]
    reveal_secrets: bool,
    /// Answer in JSON
    #[arg(long)]
    json: bool,
}

/// What is to be done.
struct Job {
    config: Config,
    /// Its text, to be stored with the checkpoint; with the place of the file, for what it names.
    text: String,
    beside: PathBuf,
    /// Where public data sets are.
    data: Option<PathBuf>,
    /// Why nothing can be promised, if so: what was seeded or shown once stays so, also after it was resumed.
    spoiled: Option<String>,
    /// The ledger that is charged beside the run's own budget.
    ledger: Option<Named>,
    split: Split,
    network: Network,
}

impl Job {
    fn new(
        text: String,
        beside: PathBuf,
        data: Option<PathBuf>,
        arguments: &Arguments,
        before: Option<&str>,
        ledger: Option<Named>,
    ) -> anyhow::Result<Self> {
        let config = Config::parse(&text)?;
        config.check_stop()?;
        anyhow::ensure!(
            ledger.is_none() || config.privacy.is_some(),
            "--ledger goes with [privacy]: nothing is charged"
        );
        let now = match (arguments.seed, arguments.reveal_secrets) {
            (Some(_), _) => Some("the noise was made with --seed"),
            (None, true) => Some("secrets were shown with --reveal-secrets"),
            (None, false) => None,
        };
        let spoiled = before.or(now).map(str::to_owned);
        let data = data.map(std::path::absolute).transpose()?;
        let split = config.data.load(data.as_deref(), &beside, config.neighbors())?;
        let shape = match &config.data.principal_components {
            None => split.train.shape(),
            Some(components) => {
                let privacy = config.privacy.as_ref().context("data.principal_components goes with [privacy]")?;
                anyhow::ensure!(
                    !privacy.is_individual(),
                    "data.principal_components: a budget for each example leaves none for components of all of them"
                );
                components.shape(split.train.shape())?
            }
        };
        let network = config.model.network(shape, split.train.classes())?;
        Ok(Self { config, text, beside, data, spoiled, ledger, split, network })
    }

    /// The ε of the budget; no reading above it is shown.
    fn epsilon(&self) -> f64 {
        let privacy = self.config.privacy.as_ref();
        // ROUNDING: up, so that what is shown is not less than what was written.
        privacy.and_then(|privacy| privacy.epsilon.up("epsilon").ok()).unwrap_or(f64::INFINITY)
    }

    /// As it is kept with the checkpoint: the places, why nothing can be promised, and the file.
    fn stored(&self) -> anyhow::Result<String> {
        let word = |path: &Path| path.to_str().map(str::to_owned).with_context(|| format!("{path:?} is not UTF-8"));
        let (beside, data) = (word(&self.beside)?, self.data.as_deref().map(word).transpose()?);
        let ledger = self.ledger.as_ref().map(Named::json).transpose()?;
        let stored =
            json!({"beside": beside, "data": data, "spoiled": self.spoiled, "ledger": ledger, "text": self.text});
        Ok(stored.to_string())
    }
}

type SharedGate = Arc<Mutex<SharedBudget>>;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (mut job, folder, interrupted) = match (&arguments.config, &arguments.resume) {
        (Some(path), _) => {
            let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
            let beside = std::path::absolute(path)?.parent().map(Path::to_owned).unwrap_or_default();
            let job = Job::new(text, beside, arguments.data.clone(), arguments, None, arguments.place.named())
                .with_context(|| path.display().to_string())?;
            (job, None, None)
        }
        (None, Some(path)) => {
            let (mut folder, interrupted) = Folder::open(path)?;
            let stored: Value = serde_json::from_str(&interrupted.config).context("the checkpoint names no config")?;
            let word = |name: &str| stored.get(name).and_then(Value::as_str);
            let (Some(beside), Some(text)) = (word("beside"), word("text")) else {
                anyhow::bail!("the checkpoint names no config")
            };
            let data = arguments.data.clone().or(word("data").map(Into::into));
            let ledger = Named::from_json(&stored["ledger"])?;
            let given = arguments.place.named();
            anyhow::ensure!(
                given.as_ref().is_none_or(|named| ledger.as_ref().is_some_and(|ledger| named.is(ledger))),
                "this run began {}; a run stays with it",
                if ledger.is_some() { "with another --ledger" } else { "without --ledger" }
            );
            // As it is given now: a password is not kept.
            let ledger = ledger.map(|ledger| given.map_or(ledger.clone(), |given| ledger.reached_by(given)));
            let job = Job::new(text.to_owned(), beside.into(), data, arguments, word("spoiled"), ledger)?;
            folder.rewrite_config(&job.stored()?);
            (job, Some(folder), Some(interrupted))
        }
        (None, None) => anyhow::bail!("give CONFIG.toml, or --resume DIR"),
    };
    if arguments.seed.is_some() {
        eprintln!("NOT PRIVATE: with --seed the noise can be repeated, and taken off, by whoever knows the seed");
    }
    if arguments.reveal_secrets {
        eprintln!("NOT PRIVATE: with --reveal-secrets this shows what depends on the examples");
    }
    let mut source = match arguments.seed {
        Some(seed) => Source::insecure_from_seed(seed),
        None => Source::from_operating_system()?,
    };
    let (neighbors, public_size) = job.config.size(&job.split.train)?;
    let sampler = job.config.sampler(neighbors, public_size, job.split.train.len())?;
    let checked = job.config.privacy.as_ref().map(|privacy| privacy.check(&sampler, &job.network)).transpose()?;
    if interrupted.is_none()
        && let Some(note) = job.config.forecast(&sampler, &job.network)?
    {
        eprintln!("note: {note}");
    }
    job.config.optimizer(job.network.parameters())?;
    let gate: Option<SharedGate> = match (&checked, &job.config.privacy) {
        (Some(checked), Some(privacy)) => {
            let place = job.ledger.as_ref().map(|named| named.open(arguments.place.who())).transpose()?;
            if let (Some(named), Some(place)) = (&mut job.ledger, &place) {
                named.keep(place);
            }
            let shared = SharedBudget::new(checked.filter.clone(), &privacy.privacy_unit, place)?;
            Some(Arc::new(Mutex::new(shared)))
        }
        (_, _) => None,
    };
    // Written only where all of the file is fine.
    let mut folder = match folder {
        Some(folder) => folder,
        None => Folder::create(&arguments.out, &job.stored()?)?,
    };
    let before = interrupted.as_ref().and_then(|interrupted| interrupted.components.clone());
    let mut projection = None;
    if let (Some(components), Some(gate)) = (job.config.data.principal_components, &gate) {
        let found = components.find(&job.split.train, &mut Arc::clone(gate), &mut source, before)?;
        folder.keep_components(found.components());
        job.split = Split { train: found.apply(&job.split.train), test: found.apply(&job.split.test) };
        projection = Some(found);
    }
    let job = job;
    let public = Public::declare(job.split.test.clone());
    let public = (job.config.data.public_test && !job.split.test.is_empty()).then_some(&public);
    let (rounds, steps_per_round) = (job.config.rounds(&sampler), sampler.steps_per_round());
    let mut training = prepare(source, &job, public, sampler, public_size, checked, gate.as_ref(), &folder)?;
    if let Some(path) = job.config.start_from.as_ref().filter(|_| interrupted.is_none()) {
        let at = if path.is_absolute() { path.clone() } else { job.beside.join(path) };
        let bytes = std::fs::read(&at).with_context(|| at.display().to_string())?;
        let parameters = import(&job.network, &bytes).map_err(|error| anyhow::anyhow!("{}: {error}", at.display()))?;
        training.start_from(parameters)?;
    }
    if let (Some(components), None) = (job.config.data.principal_components, &interrupted) {
        training.components_were_charged(components.noise()?)?;
    }
    if let Some(interrupted) = interrupted {
        let lost: u64 = interrupted.lost.iter().map(|(_, count)| count).sum();
        let sleep = |asleep: bool| {
            if let Some(gate) = &gate {
                gate.lock().unwrap_or_else(PoisonError::into_inner).sleep(asleep);
            }
        };
        // What it was charged then is in the ledger since then.
        sleep(true);
        training.resume(interrupted.state, &interrupted.lost)?;
        sleep(false);
        if lost > 0 {
            eprintln!(
                "{lost} rounds may have been drawn after the last checkpoint: they are charged, and not drawn again"
            );
        }
    }
    folder.save(&training.state())?;
    if let (Some(place), Some(left)) = (gate.as_ref().and_then(place_of), training.rounds_left()?) {
        let done = training.position().steps / steps_per_round.max(1);
        let short = rounds.map(|rounds| rounds.saturating_sub(done)).filter(|rounds| left < *rounds);
        let short = short.map(|rounds| format!("; {rounds} are asked for, so it will end early")).unwrap_or_default();
        eprintln!("note: {place} and the run's own budget have room for {left} rounds of the first noise{short}");
    }
    let trained = train(arguments, &job, &mut training, public, &mut folder);
    let refusing = gate.as_ref().and_then(|gate| {
        let mut gate = gate.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = gate.settle() {
            eprintln!("note: {error:#}");
        }
        gate.shared().and_then(|(place, refusal)| refusal.map(|_| format!("{place} refuses")))
    });
    let (ending, metrics) = match refusing {
        Some(refusing) => trained.context(refusing)?,
        None => trained?,
    };
    folder.save(&training.state())?;
    finish(arguments, &job, &mut training, projection.as_ref(), gate.as_ref(), &folder, &ending, &metrics)
}

/// The ledger that is charged, for people.
fn place_of(gate: &SharedGate) -> Option<String> {
    gate.lock().unwrap_or_else(PoisonError::into_inner).shared().map(|(place, _)| place)
}

#[expect(clippy::too_many_arguments, reason = "everything that a run is made of")]
fn prepare<'a>(
    source: Source,
    job: &'a Job,
    public: Option<&'a Public>,
    sampler: Sampler,
    public_size: u64,
    checked: Option<Checked>,
    gate: Option<&SharedGate>,
    folder: &Folder,
) -> anyhow::Result<Run<'a, Network>> {
    let odometer = match (&checked, &job.config.privacy) {
        (Some(checked), Some(privacy)) => {
            let delta = Delta::new(privacy.delta.down("delta")?)?;
            let boundary = VilleMixture::new(delta, Prior::for_plan(&checked.plan, delta))?;
            Some(Odometer::new(boundary, checked.filter.neighbors()))
        }
        (_, _) => None,
    };
    let (policy, privacy) = match checked {
        None => (no_policy()?, Privacy::None),
        Some(checked) => match checked.allowance {
            None => (checked.policy, Privacy::Clipped(checked.clip)),
            Some(allowance) => {
                let spending = Spending::new(allowance, job.split.train.len());
                (checked.policy, Privacy::Personal(checked.clip, spending))
            }
        },
    };
    let plan = Plan {
        model: &job.network,
        examples: &job.split.train,
        public,
        sampler,
        privacy,
        policy,
        optimizer: job.config.optimizer(job.network.parameters())?,
        stop: job.config.stop(),
    };
    let gate = gate.map(|gate| Box::new(Arc::clone(gate)) as Box<dyn Gate>);
    Ok(Run::new(plan, public_size, gate, odometer, folder.journal(), source)?)
}

/// To the end, with a bar, metrics and checkpoints.
fn train(
    arguments: &Arguments,
    job: &Job,
    training: &mut Run<'_, Network>,
    public: Option<&Public>,
    folder: &mut Folder,
) -> anyhow::Result<(Ending, Vec<Metrics>)> {
    static STOP: AtomicBool = AtomicBool::new(false);
    // A second Ctrl-C is not waited for.
    ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    })?;
    let bar = bar(job)?;
    let mut all = Metrics::read_all(folder, training.position().steps)?;
    let mut file = std::fs::OpenOptions::new().append(true).open(folder.path().join(METRICS))?;
    let most = job.epsilon();
    let (mut saved, mut since, mut samples) = (Instant::now(), Instant::now(), 0);
    let (mut loss, mut count, mut last) = (0.0, 0, (0.0, 0));
    let mut written = training.position();
    let ending = loop {
        let before = training.position().epoch;
        let ending = training.advance(&mut |step: &Step| {
            last = (step.noise_multiplier, step.expected);
            samples += step.expected;
            let found = step.findings.expose();
            (loss, count) = (loss + found.loss, count + found.count);
            bar.inc(1);
            if STOP.load(Ordering::SeqCst) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        if training.position().epoch > before || ending.is_some() {
            let rounds_left = training.rounds_left()?;
            let found = public.map(|public| evaluate(&job.network, training.parameters(), public.examples()).expose());
            #[expect(clippy::cast_precision_loss, reason = "numbers of examples")]
            let metrics = Metrics {
                epoch: training.position().epoch,
                steps: training.position().steps,
                noise_multiplier: last.0,
                batch: last.1,
                // The promise holds at every moment, too.
                epsilon: training.epsilon().map(|epsilon| epsilon.get().min(most)),
                rounds_left,
                public_accuracy: found.map(|found| found.correct as f64 / found.count.max(1) as f64),
                public_loss: found.map(|found| found.loss / found.count.max(1) as f64),
                secret_loss: arguments
                    .reveal_secrets
                    .then(|| loss / f64::from(u32::try_from(count.max(1)).unwrap_or(u32::MAX))),
                samples_per_second: samples as f64 / since.elapsed().as_secs_f64().max(1e-9),
            };
            bar.set_message(metrics.describe());
            if training.position() != written {
                writeln!(file, "{}", metrics.json())?;
                all.push(metrics);
                written = training.position();
            }
            (since, samples, loss, count) = (Instant::now(), 0, 0.0, 0);
        }
        if saved.elapsed() >= Duration::from_secs(arguments.checkpoint_every) {
            folder.save(&training.state())?;
            saved = Instant::now();
        }
        if let Some(ending) = ending {
            break ending;
        }
    };
    bar.finish_and_clear();
    Ok((ending, all))
}

fn bar(job: &Job) -> anyhow::Result<ProgressBar> {
    let stop = job.config.stop();
    let bar = match stop.steps {
        Some(steps) => ProgressBar::new(steps),
        None => ProgressBar::no_length(),
    };
    bar.set_style(ProgressStyle::with_template("{spinner} step {pos} {msg} [{elapsed}]")?);
    bar.enable_steady_tick(Duration::from_millis(200));
    Ok(bar)
}

/// Writes the model and the report, and says what came out.
#[expect(clippy::too_many_arguments, reason = "everything that came out")]
fn finish(
    arguments: &Arguments,
    job: &Job,
    training: &mut Run<'_, Network>,
    projection: Option<&Projection>,
    gate: Option<&SharedGate>,
    folder: &Folder,
    ending: &Ending,
    metrics: &[Metrics],
) -> anyhow::Result<ExitCode> {
    let guarantee = match (gate, &job.config.privacy) {
        (Some(gate), Some(privacy)) => {
            let delta = Delta::new(privacy.delta.down("delta")?)?;
            let gate = gate.lock().unwrap_or_else(PoisonError::into_inner);
            let guarantee = gate.filter().guarantee(delta, &privacy.privacy_unit);
            // The rule was made for the budget: rounding must not show more.
            let epsilon = if guarantee.epsilon.get() < job.epsilon() {
                shown_up(guarantee.epsilon.get())
            } else {
                privacy::text(&privacy.epsilon)
            };
            let rule = gate.filter().rule();
            let filter = if let AnyRule::FixedOrder(fixed) = rule {
                format!("{} filter at order {}", rule.word(), fixed.order())
            } else {
                format!("{} filter", rule.word())
            };
            Some(Promise { guarantee, epsilon, delta: privacy::text(&privacy.delta), filter })
        }
        (_, _) => None,
    };
    let promise = promise(job, guarantee.as_ref());
    let odometer = training.epsilon().map(|epsilon| epsilon.get());
    let epsilon = odometer.map(|epsilon| epsilon.min(job.epsilon()));
    let mut note = json!({"promise": promise, "config": job.text});
    if let (Some(odometer), Some(Promise { delta, .. }), None) = (odometer, &guarantee, &job.spoiled) {
        note["odometer"] = json!({"epsilon": super::output::json_number(odometer), "delta": delta});
    }
    if let Some(schema) = job.config.data.schema_text(&job.beside) {
        note["schema"] = schema.into();
    }
    let fixed = fixed_in_advance(job, training, ending)?;
    if let (Some((epsilon, method)), Some(Promise { delta, .. })) = (&fixed, &guarantee) {
        note["fixed_in_advance"] =
            json!({"epsilon": super::output::json_number(*epsilon), "delta": delta, "method": method});
    }
    let note = note.to_string();
    let shared = gate.and_then(|gate| {
        let gate = gate.lock().unwrap_or_else(PoisonError::into_inner);
        gate.shared().map(|(place, refusal)| (place, refusal.cloned()))
    });
    let why = match (ending, &shared) {
        (Ending::Refused(_), Some((place, Some(refusal)))) => {
            let reason = refusal.reason.as_deref().unwrap_or("the budget does not allow it");
            format!("stopped: {place} refuses another round: {}: {reason}", refusal.account)
        }
        (_, _) => describe_ending(ending, job),
    };
    let model =
        export(&job.network, training.parameters(), projection, &note).map_err(|error| anyhow::anyhow!(error))?;
    folder.replace("model.safetensors", &model)?;
    let spending = training.spending().filter(|_| arguments.reveal_secrets).map(Spending::shares);
    let page = report::page(job, &promise, &why, epsilon, metrics, spending)?;
    folder.replace("report.html", page.html().as_bytes())?;
    let last = metrics.last().cloned().unwrap_or_default();
    let at = folder.path().display();
    if arguments.json {
        print_json(&json!({
            "ending": why, "promise": promise, "last": last.json(), "steps": training.position().steps,
            "epsilon": epsilon.map(super::output::json_number), "odometer": odometer.map(super::output::json_number),
            "fixed_in_advance": fixed.map(|(epsilon, _)| super::output::json_number(epsilon)),
            "counts_not_covered": training.untaken(), "folder": at.to_string(),
        }))?;
        return Ok(exit(ending));
    }
    let comma = if why.contains(':') { "," } else { "" };
    print(&format!("{why}{comma} after {} epochs, {} steps", training.position().epoch, training.position().steps))?;
    if let Some(accuracy) = last.public_accuracy {
        print(&format!("accuracy {accuracy:.4} on the public test examples"))?;
    }
    if training.untaken() > 0 {
        print(&format!("{} noisy counts were not taken: the budget did not cover them", training.untaken()))?;
    }
    if let (Some(odometer), Some(Promise { epsilon: most, delta, .. }), None) = (odometer, &guarantee, &job.spoiled) {
        let read = shown_up(odometer);
        // Beyond the promise the odometer has nothing to add.
        print(&if odometer < job.epsilon() {
            format!(
                "spent so far: ({read}, {delta})-DP of epsilon {most}, by the odometer: it holds at any moment, also one chosen by looking"
            )
        } else {
            format!("spent so far: at most epsilon {most}, the promise (the odometer reads {read})")
        })?;
    }
    if let (Some((epsilon, method)), Some(Promise { delta, .. })) = (&fixed, &guarantee) {
        print(&format!("as a plan that was fixed in advance: ({}, {delta})-DP [{method}]", shown_up(*epsilon)))?;
    }
    print(&format!("promise: {promise}"))?;
    if let Some((place, _)) = &shared {
        print(&format!("charged to: {place}, which keeps the promise for everything that is asked of it"))?;
    }
    print(&format!("model: {at}/model.safetensors, metrics: {at}/metrics.jsonl, report: {at}/report.html"))?;
    if matches!(ending, Ending::Interrupted) {
        print(&format!("go on with: paygo train --resume {at}"))?;
    }
    Ok(exit(ending))
}

/// What the run costs where nothing about it was decided on the way: its ε and the method behind it, if that is less than the promise.
///
/// A run that was interrupted, or ended by a test, might have gone on; and one that paid for rounds it lost might have lost fewer: then it
/// is not known that nobody looked.
fn fixed_in_advance(
    job: &Job,
    training: &Run<'_, Network>,
    ending: &Ending,
) -> anyhow::Result<Option<(f64, &'static str)>> {
    let Some(privacy) = job.config.privacy.as_ref().filter(|privacy| job.spoiled.is_none() && privacy.is_scheduled())
    else {
        return Ok(None);
    };
    match ending {
        Ending::Done | Ending::Refused(_) | Ending::ScheduleEnded => {}
        Ending::Target { .. } | Ending::Interrupted => return Ok(None),
    }
    if job.config.stop().target.is_some() || !training.is_as_planned() {
        return Ok(None);
    }
    let charged = training.charged()?;
    // More of them take long to price.
    let Some((first, others)) = charged.split_first().filter(|_| charged.len() <= 256) else { return Ok(None) };
    let row = tightest_of_all(&first.and_all(others)?, Delta::new(privacy.delta.down("delta")?)?);
    Ok((row.epsilon.get() < job.epsilon()).then_some((row.epsilon.get(), row.method)))
}

/// As a shell says it, so that scripts can tell.
fn exit(ending: &Ending) -> ExitCode {
    if matches!(ending, Ending::Interrupted) { ExitCode::from(130) } else { ExitCode::SUCCESS }
}

/// What a filter keeps, as it is said.
struct Promise {
    guarantee: Guarantee,
    epsilon: String,
    delta: String,
    filter: String,
}

/// The promise, with δ as it was written.
fn promise(job: &Job, guarantee: Option<&Promise>) -> String {
    match (guarantee, &job.spoiled) {
        (None, _) => "NOT PRIVATE: no [privacy] in the config".to_owned(),
        (Some(_), Some(why)) => format!("NOT PRIVATE: {why}"),
        (Some(Promise { guarantee, epsilon, delta, filter }), None) => format!(
            "({epsilon}, {delta})-DP for one {} under {} neighbors [{}], kept by the {filter}{}",
            guarantee.privacy_unit,
            guarantee.neighbors,
            guarantee.basis.word(),
            if job.config.start_from.is_some() {
                "; what start_from had learned before is not covered: it must come from other data"
            } else {
                ""
            }
        ),
    }
}

fn describe_ending(ending: &Ending, job: &Job) -> String {
    match ending {
        Ending::Refused(_) => "stopped: the budget does not cover another round".to_owned(),
        Ending::Done => "done".to_owned(),
        Ending::ScheduleEnded => "stopped: the schedule has no noise for another epoch".to_owned(),
        Ending::Target { count } => {
            let wanted = job.config.stop().target.map_or(f64::NAN, |target| target.accuracy);
            let size = job.config.size(&job.split.train).map_or(0, |(_, size)| size);
            format!("target reached: {count:.0} examples correct by a noisy count, wanted {wanted} of {size}")
        }
        Ending::Interrupted => "interrupted".to_owned(),
    }
}
