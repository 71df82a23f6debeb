//! Ask a table of people, with a budget for each of them and accounts that last.
//!
//! `paygo demo`, then `cargo run --release --example ask_table paygo-demo.csv`

use paygo::analysis::{Layout, Manner, Mode, NoiseStd, Query, Settings, Statistic, Table, ask, open_accounts};
use paygo::noise::Source;
use std::error::Error;
use std::path::{Path, PathBuf};

#[expect(clippy::print_stdout, reason = "its output is its purpose")]
fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "paygo-demo.csv".to_owned());
    let table = Table::open(&[PathBuf::from(path)])?;
    let settings = Settings::new("customer", Mode::Individual, "epsilon=1,delta=1e-6".parse()?);
    // Made at the first run; afterwards everybody goes on where they were.
    let mut accounts = open_accounts(Some(Path::new("ask_table.accounts")), &table, &settings, &|_| ())?;
    let mut source = Source::from_operating_system()?;

    let amount = Statistic::Sum("amount".into(), "0..400".parse()?);
    let revenue = Query::new("revenue", amount, Some("region = 'North'".parse()?), NoiseStd::new(15_000.0)?)?;
    let customers = Query::new("customers", Statistic::People, None, NoiseStd::new(50.0)?)?;
    // Both at once: one scan, one charge, one vector.
    let layout = Layout::new(vec![revenue, customers], None)?;
    let answers = ask(&table, &layout, &mut accounts, Manner::default(), &mut source, &|_| ())?;
    for answer in &answers.answers {
        let number = &answer.numbers[0];
        println!("{}: {:.0}, 95 % from {:.0} to {:.0}", answer.name, number.value, number.low, number.high);
    }
    println!("everybody certainly took part: {}", answers.everyone);

    // For the person it is about, who asked: the one place where a secret may be shown.
    if let Some(account) = accounts.disclose("7")? {
        println!("customer 7 has spent rho {}", account.expose().spent);
    }
    Ok(())
}
