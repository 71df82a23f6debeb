//! How tight are the filters and odometers? Five workloads, each against its price fixed in advance.
//!
//! ```sh
//! cargo run --release --example tightness
//! cargo run --release --example tightness -- admitted.svg    # DP-SGD at many budgets, as a picture
//! ```

use paygo::accounting::account::{Question, rows};
use paygo::accounting::convert::Conversion;
use paygo::accounting::cost::Cost;
use paygo::accounting::curve::Orders;
use paygo::accounting::filter::{AnyRule, Budget, Clock, Filter, FixedOrder, Gdp, Mixture, Pure, Union, Zcdp};
use paygo::accounting::guarantee::Basis;
use paygo::accounting::loss;
use paygo::accounting::mechanism::Mechanism;
use paygo::accounting::odometer::{
    AnyBoundary, Boundary, Doubling, Linear, NormalMixture, Odometer, Restart, Stitched, VilleFixed, VilleMixture,
    VilleUnion,
};
use paygo::accounting::params::{Delta, Divergence, Epsilon, Neighbors, Order};
use paygo::accounting::prior::Prior;
use paygo::numeric::Amount;
use paygo::numeric::search::{first_true, last_true};
use paygo_report::{LineChart, Series};
use std::error::Error;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A sequence of mechanisms and a budget.
struct Workload {
    name: &'static str,
    epsilon: &'static str,
    delta: &'static str,
    /// The mechanisms, over and over; a schedule is as long as it is.
    step: fn(u64) -> Result<Mechanism>,
    longest: u64,
}

const WORKLOADS: [Workload; 5] = [
    Workload {
        name: "Gaussian, noise 20",
        epsilon: "1",
        delta: "1e-5",
        step: |_| Ok(Mechanism::gaussian(20.0)?),
        longest: 200,
    },
    Workload {
        name: "DP-SGD, q = 0.01, noise 1",
        epsilon: "3",
        delta: "1e-5",
        step: |_| Ok(Mechanism::poisson_sampled_gaussian(0.01, 1.0)?),
        longest: 20_000,
    },
    Workload {
        name: "schedule, noise 60 falling by 1 %",
        epsilon: "2",
        delta: "1e-6",
        step: |i| Ok(Mechanism::gaussian(60.0 * 0.99f64.powi(i32::try_from(i)?))?),
        longest: 400,
    },
    Workload {
        name: "pure-DP queries of 0.05",
        epsilon: "2",
        delta: "1e-6",
        step: |_| Ok(Mechanism::pure(0.05)?),
        longest: 2000,
    },
    Workload {
        name: "mixed ledger",
        epsilon: "3",
        delta: "1e-6",
        step: |i| {
            Ok(match i % 4 {
                0 => Mechanism::gaussian(40.0)?,
                1 => Mechanism::laplace(50.0)?,
                2 => Mechanism::poisson_sampled_gaussian(0.02, 1.5)?,
                _ => Mechanism::pure(0.02)?,
            })
        },
        longest: 4000,
    },
];

impl Workload {
    fn budget(&self) -> Result<Budget> {
        Ok(Budget::from_decimal(self.epsilon, self.delta)?)
    }

    /// The cost of one step.
    fn cost(&self, i: u64) -> Result<Cost> {
        Ok(Cost::of(&(self.step)(i)?, Neighbors::AddRemove)?)
    }

    /// The cost of the first `n` steps.
    fn plan(&self, n: u64) -> Result<Cost> {
        let costs = (1..n).map(|i| self.cost(i)).collect::<Result<Vec<_>>>()?;
        Ok(self.cost(0)?.and_all(&costs)?)
    }

    /// The least ε of the first `n` steps, fixed in advance: Rényi, or the exact profile of Gaussian noise.
    fn fixed(&self, n: u64) -> Result<f64> {
        let rows = rows(&self.plan(n)?, Question::EpsilonAt(self.budget()?.delta()));
        let wanted = rows.iter().filter(|row| row.basis != Basis::Estimate);
        let wanted = wanted.filter(|row| ["renyi-exact", "gdp-exact"].contains(&row.method));
        Ok(wanted.map(|row| row.epsilon.get()).fold(f64::INFINITY, f64::min))
    }

    /// The most steps that the budget allows in advance.
    fn most(&self) -> Result<u64> {
        let epsilon = self.budget()?.epsilon().get();
        Ok(last_true(1, self.longest, |n| self.fixed(n).is_ok_and(|e| e <= epsilon)).unwrap_or(0))
    }

    /// The most that the privacy-loss distribution allows in advance.
    fn most_by_loss(&self) -> Result<u64> {
        let budget = self.budget()?;
        let fits = |n: u64| {
            self.plan(n).is_ok_and(|plan| loss::tightest_of_all(&plan, budget.delta()).epsilon <= budget.epsilon())
        };
        Ok(last_true(1, self.longest, fits).unwrap_or(0))
    }

    /// The order that the classic conversion would choose.
    fn order(&self) -> Result<Order> {
        let budget = self.budget()?;
        let log = -paygo::numeric::elementary::ln(budget.delta().get());
        Ok(Order::new(1.0 + log * 2.0 / budget.epsilon().get())?)
    }

    fn rules(&self, plan: &Cost) -> Result<[(&'static str, AnyRule); 9]> {
        let budget = self.budget()?;
        let longer = self.plan(self.most_by_loss()?)?;
        Ok([
            ("clock", Clock::new(budget)?.into()),
            ("clock, for the plan", Clock::for_plan(budget, &[(longer, 1)], 0.0)?.into()),
            ("mixture", Mixture::new(budget)?.into()),
            ("mixture, for the plan", Mixture::for_plan(budget, plan)?.into()),
            ("union", Union::new(budget)?.into()),
            ("fixed-order, 1 + 2·ln(1/δ)/ε", FixedOrder::new(self.order()?, budget)?.into()),
            ("zcdp", Zcdp::new(budget)?.into()),
            ("gdp", Gdp::new(budget)?.into()),
            ("pure", Pure::new(budget)?.into()),
        ])
    }

    fn boundaries(&self) -> Result<[AnyBoundary; 8]> {
        let (budget, order, none) = (self.budget()?, self.order()?, Amount::ZERO);
        let (delta, target) = (budget.delta(), Epsilon::new(budget.epsilon().get())?);
        let prior = Prior::log_spaced();
        let finite = Orders::new(prior.orders().as_slice()[..prior.weights().len()].to_vec())?;
        let whole = Conversion::Classic.budget(order, target, delta).map_or(0.0, Divergence::get);
        let quarter = Amount::from_f64_up(whole / 4.0);
        Ok([
            VilleMixture::new(delta, prior.clone())?.into(),
            VilleUnion::new(delta, prior)?.into(),
            VilleFixed::new(order, delta)?.into(),
            Doubling::new(delta, finite)?.into(),
            Restart::new(order, quarter, delta)?.into(),
            Linear::for_target(target, delta, none)?.into(),
            NormalMixture::for_target(target, delta, none)?.into(),
            Stitched::new(delta, none)?.into(),
        ])
    }

    /// How many steps a rule admits, one by one; `None` when a step has no price in its currency.
    fn admitted(&self, rule: AnyRule) -> Result<Option<u64>> {
        let mut filter = Filter::new(rule, Neighbors::AddRemove);
        for i in 0..self.longest {
            let Ok(charge) = filter.price(&self.cost(i)?) else { return Ok(None) };
            if !filter.admit(&charge).is_admitted() {
                return Ok(Some(i));
            }
        }
        Ok(Some(self.longest))
    }

    /// What an odometer reads after `n` steps; `None` when a step has no price in its currency.
    fn reading(&self, boundary: AnyBoundary, n: u64) -> Result<Option<f64>> {
        let mut odometer = Odometer::new(boundary, Neighbors::AddRemove);
        for i in 0..n {
            let Ok(charge) = odometer.price(&self.cost(i)?) else { return Ok(None) };
            if odometer.observe(&charge).is_err() {
                return Ok(None);
            }
        }
        Ok(Some(odometer.reading().get()))
    }
}

/// A table, with a column for each workload.
#[derive(Default)]
struct Table {
    rows: Vec<(String, Vec<String>)>,
}

impl Table {
    /// One more cell in a row.
    fn push(&mut self, row: &str, cell: String) {
        match self.rows.iter_mut().find(|(known, _)| known == row) {
            Some((_, cells)) => cells.push(cell),
            None => self.rows.push((row.to_owned(), vec![cell])),
        }
    }

    #[expect(clippy::print_stdout, reason = "its output is its purpose")]
    fn print(&self, explanation: &str, title: &str) {
        println!("{explanation}\n");
        println!("| {title} | {} |", WORKLOADS.map(|w| w.name).join(" | "));
        println!("| --- |{}", " --- |".repeat(WORKLOADS.len()));
        for (name, cells) in &self.rows {
            println!("| {name} | {} |", cells.join(" | "));
        }
        println!();
    }
}

/// What has no price in a currency has a dash.
fn cell<T>(value: Option<T>, text: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), text)
}

/// How many steps each filter admits, one by one.
fn filters(table: &mut Table, workload: &Workload, steps: u64, plan: &Cost) -> Result<()> {
    table.push("budget (ε, δ)", format!("{}, {}", workload.epsilon, workload.delta));
    table.push("**fixed in advance, privacy loss**", workload.most_by_loss()?.to_string());
    table.push("**fixed in advance, Rényi**", steps.to_string());
    for (name, rule) in workload.rules(plan)? {
        table.push(name, cell(workload.admitted(rule)?, |admitted| admitted.to_string()));
    }
    Ok(())
}

/// The least ε, to a part in two thousand, at which the clock of a plan admits all of it.
fn clock_needs(workload: &Workload, plan: &Cost, fixed: f64) -> Result<f64> {
    let needs = |part: u64| fixed * (1.0 + f64::from(u32::try_from(part).unwrap_or(u32::MAX)) / 2000.0);
    let admits = |part: u64| -> Result<bool> {
        let budget = Budget::new(Epsilon::new(needs(part))?, workload.budget()?.delta())?;
        let mut filter = Filter::new(Clock::for_plan(budget, &[(plan.clone(), 1)], 0.0)?, Neighbors::AddRemove);
        Ok(filter.request(plan)?.is_admitted())
    };
    let found = first_true(0, 1000, 20, |part| admits(part).unwrap_or(false));
    Ok(found.map_or(f64::INFINITY, needs))
}

/// The least ε at which the filters that know the plan would admit all of it.
fn followed(table: &mut Table, workload: &Workload, steps: u64, plan: &Cost) -> Result<()> {
    let budget = workload.budget()?;
    let filter = Filter::new(Mixture::for_plan(budget, plan)?, Neighbors::AddRemove);
    let least = filter.rule().least_epsilon(filter.price(plan)?.lanes().amounts()).get();
    let renyi = rows(plan, Question::EpsilonAt(budget.delta()));
    let renyi = renyi.iter().find(|row| row.method == "renyi-exact").map_or(f64::NAN, |row| row.epsilon.get());
    table.push("steps in the plan", steps.to_string());
    let loss = loss::tightest_of_all(plan, budget.delta()).epsilon.get();
    let needed = clock_needs(workload, plan, loss)?;
    table.push("ε fixed in advance, privacy loss", format!("{loss:.4}"));
    table.push("ε that the clock for the plan needs", format!("{needed:.4}"));
    table.push("more than privacy loss", format!("{:.1} %", 100.0 * (needed / loss - 1.0)));
    table.push("ε fixed in advance, Rényi", format!("{renyi:.4}"));
    table.push("ε that the mixture for the plan needs", format!("{least:.4}"));
    table.push("more than Rényi", format!("{:.1} %", 100.0 * (least / renyi - 1.0)));
    Ok(())
}

/// What each odometer reads after as many steps.
fn odometers(table: &mut Table, workload: &Workload, steps: u64) -> Result<()> {
    table.push("steps", steps.to_string());
    table.push("**fixed in advance**", format!("{:.3}", workload.fixed(steps)?));
    for boundary in workload.boundaries()? {
        let name = boundary.word();
        table.push(name, cell(workload.reading(boundary, steps)?, |reading| format!("{reading:.3}")));
    }
    Ok(())
}

/// DP-SGD with q = 0.01 and noise 1 at δ = 1e-5: how many steps each filter admits, by the ε of its budget.
fn picture(file: &str) -> Result<()> {
    let step = Cost::of(&Mechanism::poisson_sampled_gaussian(0.01, 1.0)?, Neighbors::AddRemove)?;
    let names = [
        "clock, for the plan",
        "clock",
        "mixture, for the plan",
        "mixture",
        "fixed in advance, privacy loss",
        "fixed in advance, Rényi",
    ];
    let mut series =
        names.map(|name| Series { name: name.to_owned(), points: Vec::new(), dashed: name.starts_with("fixed") });
    for eighth in 4..=32u32 {
        let epsilon = f64::from(eighth) / 8.0;
        let budget = Budget::new(Epsilon::new(epsilon)?, Delta::new(1e-5)?)?;
        let most = |price: &dyn Fn(&Cost) -> f64| {
            last_true(1, 20_000, |n| step.repeat(n).is_ok_and(|plan| price(&plan) <= epsilon)).unwrap_or(0)
        };
        let by_loss = most(&|plan| loss::tightest_of_all(plan, budget.delta()).epsilon.get());
        let by_orders = most(&|plan| paygo::accounting::account::tightest(plan, budget.delta()).epsilon.get());
        let admitted = |rule: AnyRule| -> Result<u64> {
            let filter = Filter::new(rule, Neighbors::AddRemove);
            Ok(filter.room_for(&filter.price(&step)?, 20_000))
        };
        let counts = [
            admitted(Clock::for_plan(budget, &[(step.clone(), 20_000)], 0.0)?.into())?,
            admitted(Clock::new(budget)?.into())?,
            admitted(Mixture::for_plan(budget, &step.repeat(by_orders.max(1))?)?.into())?,
            admitted(Mixture::new(budget)?.into())?,
            by_loss,
            by_orders,
        ];
        for (series, count) in series.iter_mut().zip(counts) {
            series.points.push((epsilon, f64::from(u32::try_from(count)?)));
        }
    }
    let chart = LineChart {
        title: "DP-SGD, q = 0.01, noise 1, delta = 1e-5: steps that a budget admits".into(),
        x_label: "epsilon of the budget".into(),
        y_label: "steps".into(),
        series: series.to_vec(),
        y_limit: f64::INFINITY,
    };
    std::fs::write(file, chart.svg()?)?;
    Ok(())
}

fn main() -> Result<()> {
    if let Some(file) = std::env::args().nth(1) {
        return picture(&file);
    }
    let mut tables = [Table::default(), Table::default(), Table::default()];
    for workload in &WORKLOADS {
        let steps = workload.most()?;
        let plan = workload.plan(steps)?;
        filters(&mut tables[0], workload, steps, &plan)?;
        followed(&mut tables[1], workload, steps, &plan)?;
        odometers(&mut tables[2], workload, steps)?;
    }
    tables[0].print("Steps that each filter admits, one by one:", "filter");
    tables[1].print("A plan that is followed, under the filter that was told the plan:", "");
    tables[2].print("What each odometer reads after as many steps as the budget allows in advance:", "odometer");
    Ok(())
}
