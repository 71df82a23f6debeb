//! Questions of a Parquet table, and accounts of very many people: rows a second, and how long it takes to open them.
//!
//! `cargo bench --bench analysis`; under `cargo test` with small sizes.

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use paygo::analysis::{
    Accounts, Bins, ClipRange, Key, Layout, Manner, Mode, NoiseStd, Query, Salt, Settings, Statistic, Table, Weight,
    ask, open_accounts,
};
use paygo::noise::Source;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Made-up numbers, the same every time.
struct Generator(u64);

impl Generator {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

fn write_table(path: &Path, rows: u64, people: u64) -> Outcome<()> {
    const BATCH: u64 = 1 << 20;
    let mut random = Generator(1);
    let mut writer: Option<ArrowWriter<std::fs::File>> = None;
    for start in (0..rows).step_by(usize::try_from(BATCH)?) {
        let n = BATCH.min(rows - start);
        let mut person = Vec::new();
        let mut amount = Vec::new();
        let mut region = Vec::new();
        for row in start..start + n {
            // Everybody has a row; the rest are spread at random.
            person.push(i64::try_from(if row < people { row } else { random.below(people) })?);
            amount.push(f64::from(u32::try_from(random.below(20_000))?) / 100.0);
            region.push(["North", "East", "South", "West"][usize::try_from(random.below(4))?]);
        }
        let columns: [(&str, ArrayRef); 3] = [
            ("person", Arc::new(Int64Array::from(person))),
            ("amount", Arc::new(Float64Array::from(amount))),
            ("region", Arc::new(StringArray::from(region))),
        ];
        let batch = RecordBatch::try_from_iter(columns)?;
        if writer.is_none() {
            let properties = WriterProperties::builder().set_compression(parquet::basic::Compression::SNAPPY).build();
            writer = Some(ArrowWriter::try_new(std::fs::File::create(path)?, batch.schema(), Some(properties))?);
        }
        if let Some(writer) = &mut writer {
            writer.write(&batch)?;
        }
    }
    writer.ok_or("no rows")?.close()?;
    Ok(())
}

fn questions() -> Outcome<Vec<(&'static str, Layout)>> {
    let sum = || Ok::<_, Box<dyn Error>>(Statistic::Sum("amount".into(), ClipRange::new(0.0, 1000.0)?));
    let noise = |std: f64| NoiseStd::new(std);
    let histogram = || {
        let names = ["North", "East", "South", "West"].map(str::to_owned).to_vec();
        Ok::<_, Box<dyn Error>>(Statistic::Histogram("region".into(), Bins::Categories(names), Weight::Person))
    };
    Ok(vec![
        ("sum", Layout::new(vec![Query::new("sum", sum()?, None, noise(1e5)?)?], None)?),
        (
            "sum where",
            Layout::new(
                vec![Query::new(
                    "s",
                    sum()?,
                    Some("region in ('North', 'South') and amount < 150".parse()?),
                    noise(1e5)?,
                )?],
                None,
            )?,
        ),
        ("histogram", Layout::new(vec![Query::new("histogram", histogram()?, None, noise(1e3)?)?], None)?),
        (
            "sum, histogram",
            Layout::new(
                vec![
                    Query::new("sum", sum()?, None, noise(1e5)?)?,
                    Query::new("histogram", histogram()?, None, noise(1e3)?)?,
                ],
                None,
            )?,
        ),
    ])
}

#[expect(clippy::print_stdout, reason = "its output is its purpose")]
fn main() -> Outcome<()> {
    let small = std::env::args().any(|argument| argument == "--test");
    let (rows, people, accounts) = if small { (10_000, 1000, 100_000) } else { (10_000_000, 1_000_000, 100_000_000) };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("table.parquet");
    write_table(&path, rows, people)?;
    let table = Table::open(&[path])?;
    println!("{rows} rows of {people} people, Parquet, {} threads", rayon::current_num_threads());
    let settings = Settings::new("person", Mode::Individual, "epsilon=3,delta=1e-6".parse()?);
    let file = folder.path().join("table.accounts");
    let mut source = Source::from_operating_system()?;
    let million = |n: u64, start: Instant| {
        #[expect(clippy::cast_precision_loss, reason = "for people")]
        let rate = n as f64 / start.elapsed().as_secs_f64() / 1e6;
        format!("{:.2} s, {rate:.1} million rows a second", start.elapsed().as_secs_f64())
    };
    let start = Instant::now();
    drop(open_accounts(Some(&file), &table, &settings, &|_| ())?);
    println!("{:32} {}", "opening the first accounts", million(rows, start));
    for (name, layout) in questions()? {
        for _ in 0..2 {
            let start = Instant::now();
            let mut accounts = open_accounts(Some(&file), &table, &settings, &|_| ())?;
            ask(&table, &layout, &mut accounts, Manner::default(), &mut source, &|_| ())?;
            println!("{name:32} {}", million(rows, start));
        }
    }
    // One question with no accounts yet, all in: the people are found first.
    let (_, layout) = questions()?.remove(0);
    let start = Instant::now();
    let mut fresh = open_accounts(None, &table, &settings, &|_| ())?;
    ask(&table, &layout, &mut fresh, Manner::default(), &mut source, &|_| ())?;
    println!("{:32} {}", "sum, accounts not kept", million(rows, start));
    drop(fresh);

    let many = folder.path().join("many.accounts");
    let salt = Salt([7; 16]);
    let start = Instant::now();
    let mut keys: Vec<(Key, u8)> = (0..accounts).map(|id: u32| (salt.key(&id.to_string()), 0)).collect();
    rayon::slice::ParallelSliceMut::par_sort_unstable(&mut keys[..]);
    drop(Accounts::create(Some(&many), settings.clone(), salt, &keys)?);
    drop(keys);
    println!("accounts of {accounts} people made in {:.1} s", start.elapsed().as_secs_f64());
    for _ in 0..3 {
        let start = Instant::now();
        let opened = Accounts::open(&many, Some(&settings))?;
        let seconds = start.elapsed().as_secs_f64();
        let found = opened.disclose("4711")?.is_some();
        assert!(found && opened.disclose("nobody")?.is_none());
        println!("opened again in {:.4} s", seconds);
    }
    Ok(())
}
