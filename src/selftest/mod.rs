//! The golden vectors: reference values to 25 and more digits, and what this build makes of them.
//!
//! An upper bound passes when `truth ≤ ours ≤ truth·(1 + 10⁻⁹)`, a budget when `truth·(1 − 10⁻⁹) ≤ ours ≤ truth`. Inputs
//! are exact decimals and are read to the side on which the answer is not too small.
//!
//! With the built-in vectors goes a look at the machine: whether matrix products keep their rows apart.

mod families;
mod filters;
mod odometers;
mod two_steps;

use paygo_numeric::decimal::{parse_down, parse_nearest, parse_up};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// How far above the truth an upper bound may lie, relatively, unless a tag "within X" says otherwise.
const TIGHT: f64 = 1e-9;
/// Differences below this are not looked at.
const TINY: f64 = 1e-300;

macro_rules! built_in {
    ($($family:literal),* $(,)?) => {
        &[$(($family, include_str!(concat!("../../testdata/golden/", $family, ".json")))),*]
    };
}

/// The vectors that travel with the program.
const BUILT_IN: &[(&str, &str)] = built_in![
    "balls_and_bins",
    "clock",
    "composition",
    "filters",
    "filters_orders",
    "gaussian_profile",
    "individual_clipping",
    "limited_order",
    "limited_order_orders",
    "mechanisms",
    "odometers",
    "odometers_orders",
    "rdp_basic",
    "rdp_basic_orders",
    "rdp_sampled_gaussian",
    "rdp_sampled_gaussian_orders",
    "rdp_to_dp",
    "rdp_to_dp_orders",
    "sampled_gaussian_profile",
    "schedules",
    "zcdp_to_dp",
];

/// One file of golden vectors.
#[derive(Deserialize)]
struct Family {
    family: String,
    cases: Vec<Case>,
}

/// One golden case.
#[derive(Deserialize)]
struct Case {
    id: String,
    kind: String,
    inputs: Value,
    outputs: Value,
    #[serde(default)]
    tags: Vec<String>,
}

/// What became of one family.
#[derive(Clone, Debug, serde::Serialize)]
pub struct FamilyReport {
    /// Its name.
    pub family: String,
    /// Cases in it.
    pub total: usize,
    /// Cases that passed.
    pub passed: usize,
    /// Cases that this build has no code for.
    pub skipped: usize,
    /// The largest relative distance from the truth.
    pub worst_relative_error: f64,
    /// What failed, and how.
    pub failures: Vec<String>,
}

/// What became of all of them.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Report {
    /// Family by family.
    pub families: Vec<FamilyReport>,
}

impl Report {
    /// Cases that passed.
    #[must_use]
    pub fn passed(&self) -> usize {
        self.families.iter().map(|family| family.passed).sum()
    }

    /// Cases that failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.families.iter().map(|family| family.failures.len()).sum()
    }

    /// Cases that this build has no code for.
    #[must_use]
    pub fn skipped(&self) -> usize {
        self.families.iter().map(|family| family.skipped).sum()
    }
}

/// Runs the built-in vectors, or every `*.json` in a folder; `finished` hears of each family as it ends.
///
/// # Errors
/// When the folder or a file in it cannot be read or is not a file of golden vectors.
pub fn run(folder: Option<&Path>, mut finished: impl FnMut(&FamilyReport)) -> anyhow::Result<Report> {
    use anyhow::Context;
    let mut texts: Vec<(String, String)> = Vec::new();
    if let Some(folder) = folder {
        for entry in std::fs::read_dir(folder).with_context(|| format!("golden folder {}", folder.display()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                texts.push((path.display().to_string(), text));
            }
        }
        anyhow::ensure!(!texts.is_empty(), "golden folder {} holds no *.json", folder.display());
        texts.sort();
    } else {
        texts.extend(BUILT_IN.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())));
    }
    let families = texts
        .iter()
        .map(|(name, text)| {
            let family: Family =
                serde_json::from_str(text).with_context(|| format!("{name} is not a file of golden vectors"))?;
            let report = check_family(&family);
            finished(&report);
            Ok(report)
        })
        .collect::<anyhow::Result<_>>()?;
    let mut report = Report { families };
    if folder.is_none() {
        let rows = check_rows();
        finished(&rows);
        report.families.push(rows);
    }
    Ok(report)
}

/// That the rows of matrix products do not know each other on this machine: private training rests on it.
fn check_rows() -> FamilyReport {
    let failures: Vec<String> =
        paygo_training::model::check_rows().err().into_iter().map(|found| found.to_string()).collect();
    FamilyReport {
        family: "matrix_rows".to_owned(),
        total: 1,
        passed: 1 - failures.len(),
        skipped: 0,
        worst_relative_error: 0.0,
        failures,
    }
}

fn check_family(family: &Family) -> FamilyReport {
    let mut report = FamilyReport {
        family: family.family.clone(),
        total: family.cases.len(),
        passed: 0,
        skipped: 0,
        worst_relative_error: 0.0,
        failures: Vec::new(),
    };
    for case in &family.cases {
        let mut check = Check::new(case);
        match families::check(&family.family, &mut check) {
            None => report.skipped += 1,
            Some(()) => {
                if check.compared == 0 {
                    check.complaints.push("nothing was compared".to_owned());
                }
                report.worst_relative_error = report.worst_relative_error.max(check.worst);
                if check.complaints.is_empty() {
                    report.passed += 1;
                } else {
                    report.failures.push(format!("{}: {}", case.id, check.complaints.join("; ")));
                }
            }
        }
    }
    report
}

/// One case under examination: reads inputs, compares outputs.
struct Check<'a> {
    case: &'a Case,
    worst: f64,
    compared: usize,
    complaints: Vec<String>,
}

impl<'a> Check<'a> {
    const fn new(case: &'a Case) -> Self {
        Self { case, worst: 0.0, compared: 0, complaints: Vec::new() }
    }

    fn kind(&self) -> &'a str {
        &self.case.kind
    }

    /// An input as text; empty when it is missing, which then fails to parse and is complained about.
    fn text(&self, name: &str) -> &'a str {
        self.case.inputs.get(name).and_then(Value::as_str).unwrap_or("")
    }

    fn input(&self, name: &str) -> &'a Value {
        self.case.inputs.get(name).unwrap_or(&Value::Null)
    }

    fn up(&self, name: &str) -> f64 {
        parse_up(self.text(name)).unwrap_or(f64::NAN)
    }

    fn down(&self, name: &str) -> f64 {
        parse_down(self.text(name)).unwrap_or(f64::NAN)
    }

    fn near(&self, name: &str) -> f64 {
        parse_nearest(self.text(name)).unwrap_or(f64::NAN)
    }

    fn ups(&self, name: &str) -> Vec<f64> {
        texts(self.input(name)).iter().map(|text| parse_up(text).unwrap_or(f64::NAN)).collect()
    }

    fn downs(&self, name: &str) -> Vec<f64> {
        texts(self.input(name)).iter().map(|text| parse_down(text).unwrap_or(f64::NAN)).collect()
    }

    fn output(&self, name: &str) -> &'a Value {
        self.case.outputs.get(name).unwrap_or(&Value::Null)
    }

    /// Whether the case has this output.
    fn has(&self, name: &str) -> bool {
        self.case.outputs.get(name).is_some()
    }

    /// `ours` promises to be an upper bound.
    fn upper(&mut self, name: &str, ours: f64) {
        self.compare(name, self.case.outputs.get(name), ours, true);
    }

    /// `ours` promises to be a lower bound.
    fn lower(&mut self, name: &str, ours: f64) {
        self.compare(name, self.case.outputs.get(name), ours, false);
    }

    /// The list `ours` promises to be lower bounds, one by one.
    fn lowers(&mut self, name: &str, ours: &[f64]) {
        self.list(name, ours, false);
    }

    /// The list `ours` promises to be upper bounds, one by one.
    fn uppers(&mut self, name: &str, ours: &[f64]) {
        self.list(name, ours, true);
    }

    /// Budgets, one by one: lower bounds, and none where the vector's is negative.
    fn budgets(&mut self, name: &str, ours: &[Option<f64>]) {
        let negative = |truth: &str| parse_down(truth).is_some_and(|truth| truth < 0.0);
        let truths = texts(self.output(name));
        for (i, (budget, _)) in ours.iter().zip(&truths).enumerate().filter(|(_, (_, truth))| negative(truth)) {
            if budget.is_some() {
                self.complaints.push(format!("{name}: {budget:?} in place {i}, where there is none"));
            }
        }
        // A missing one is complained about unless the truth is negative.
        let shown = |(budget, truth): (&Option<f64>, &&str)| match budget {
            None if negative(truth) => parse_down(truth).unwrap_or(f64::NAN),
            Some(_) | None => budget.unwrap_or(f64::NAN),
        };
        let ours: Vec<f64> = ours.iter().zip(&truths).map(shown).collect();
        self.lowers(name, &ours);
    }

    fn list(&mut self, name: &str, ours: &[f64], upper: bool) {
        let list = self.case.outputs.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        if list.len() != ours.len() {
            self.complaints.push(format!("{name}: {} values, expected {}", ours.len(), list.len()));
        }
        for (truth, &value) in list.iter().zip(ours) {
            self.compare(name, Some(truth), value, upper);
        }
    }

    /// The decisions must be the very ones.
    fn decisions(&mut self, ours: &[bool]) {
        self.compared += 1;
        let list = self.case.outputs.get("decisions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let theirs: Vec<Option<bool>> = list.iter().map(Value::as_bool).collect();
        if theirs.len() != ours.len() || theirs.iter().zip(ours).any(|(theirs, ours)| *theirs != Some(*ours)) {
            self.complaints.push(format!("decisions: got {ours:?}, expected {theirs:?}"));
        }
    }

    /// `ours` must be the very number.
    fn equal(&mut self, name: &str, ours: f64) {
        self.same(name, self.case.outputs.get(name), ours);
    }

    /// `ours` must be the very number at a place of a list.
    fn equal_at(&mut self, name: &str, index: usize, ours: f64) {
        self.same(name, self.case.outputs.get(name).and_then(|list| list.get(index)), ours);
    }

    fn same(&mut self, name: &str, truth: Option<&Value>, ours: f64) {
        self.compared += 1;
        let truth = truth.and_then(Value::as_str).and_then(parse_down);
        if truth != Some(ours) {
            self.complaints.push(format!("{name}: got {ours}, expected {truth:?}"));
        }
    }

    /// `ours`, computed from rounded inputs, must agree with a number of the case.
    fn close(&mut self, name: &str, ours: f64, truth: f64) {
        self.compared += 1;
        let relative = ((ours - truth) / truth).abs();
        self.worst = self.worst.max(relative);
        if relative.is_nan() || relative > TIGHT {
            self.complaints.push(format!("{name}: {ours:e} is {relative:e} away from {truth:e}"));
        }
    }

    /// `ours` must lie between two multiples of a number that is itself known to some digits only.
    fn within(&mut self, name: &str, ours: f64, (low, high): (f64, f64)) {
        self.compared += 1;
        let truth = self.case.outputs.get(name).and_then(Value::as_str).and_then(parse_down).unwrap_or(f64::NAN);
        self.worst = self.worst.max(ours / truth - 1.0);
        if !(truth * low <= ours && ours <= truth * high) {
            self.complaints.push(format!("{name}: {ours:e} is not between {low} and {high} times {truth:e}"));
        }
    }

    fn compare(&mut self, name: &str, truth: Option<&Value>, ours: f64, upper: bool) {
        self.compared += 1;
        let Some(text) = truth.and_then(Value::as_str) else {
            self.complaints.push(format!("{name}: the vector has no such output"));
            return;
        };
        let (Some(down), Some(up)) = (parse_down(text), parse_up(text)) else {
            self.complaints.push(format!("{name}: {text} is not a number"));
            return;
        };
        let distance = if ours == up || ours == down { 0.0 } else { ours - up };
        let relative = if distance.abs() <= TINY { 0.0 } else { (distance / up).abs() };
        self.worst = self.worst.max(if relative.is_nan() { f64::INFINITY } else { relative });
        let within = self.case.tags.iter().find_map(|tag| parse_up(tag.strip_prefix("within ")?)).unwrap_or(TIGHT);
        // `ours ≥ truth` for a double means `ours ≥` the least double at or above the truth.
        // Who chooses its orders computes at the doubles it chose: near the truth at the decimals, on either side of it.
        let chosen = self.case.tags.iter().any(|tag| tag == "chosen_orders");
        let right_side = chosen || if upper { ours >= up } else { ours <= down };
        if !right_side {
            let side = if upper { "below" } else { "above" };
            self.complaints.push(format!("{name}: {ours:e} is {side} the truth {text}"));
        } else if relative.is_nan() || relative > within {
            self.complaints.push(format!("{name}: {ours:e} is {relative:e} away from the truth {text}"));
        }
    }
}

/// The strings of a list.
fn texts(value: &Value) -> Vec<&str> {
    value.as_array().map_or_else(Vec::new, |list| list.iter().map(|item| item.as_str().unwrap_or("")).collect())
}
